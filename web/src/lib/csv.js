// Saves rows as a CSV file (RFC 4180); a text that a spreadsheet would run as a formula begins with an apostrophe.
const cell = (value) => {
  const text = typeof value === "string" ? value.replace(/^[=+\-@\t\r]/, "'$&") : String(value ?? "");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

export function saveCsv(name, rows) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([rows.map((row) => `${row.map(cell).join(",")}\r\n`).join("")], { type: "text/csv" }));
  link.download = `${name.replace(/[^\w.-]+/g, "-").slice(0, 80)}.csv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
