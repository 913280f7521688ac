import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

// The built files are committed and shipped in the wheel; names in assets/ have a digest.
export default defineConfig({
  base: "./",
  plugins: [svelte()],
  build: {
    outDir: "../src/nephoscope/serve/static",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
  },
});
