"""Answers of Azure Blob, Google Cloud Storage and WebHDFS as their documentation describes them.

A server on loopback, for what no free server exists for: no test of the services themselves. It
refuses a request whose signature, token or user is wrong, and keeps objects in memory.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.sax.saxutils import escape

from tests.servers import serving

BUCKET = "objects"
ACCOUNT = "nephoscopetest"
AZURE_KEY = base64.b64encode(b"a key of the tests, of no account").decode()
SIGNATURE = "sv=2022-11-02&sp=rwdl&sig=signature-of-the-test"
TOKEN = "token-of-the-test"
USER = "user-of-the-test"
PAGE = 3
"""Entries of a page, so few that each list has several."""
SMALL_BYTES = 4096
"""Requests with more are writes of objects."""


class Answer(NamedTuple):
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = {}


class Request(NamedTuple):
    method: str
    path: str
    query: dict[str, str]
    headers: Mapping[str, str]
    body: bytes


class Service:
    """Objects, unfinished uploads, and how many writes are refused as too many first."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.uploads: dict[str, dict[str, bytes]] = {}
        self.busy = 0
        self.methods: set[str] = set()
        """Operations that were asked for."""
        self.lock = threading.Lock()

    def answer(self, request: Request) -> Answer:
        raise NotImplementedError

    def names(self, prefix: str, delimiter: str) -> list[str]:
        """Names below a prefix, in order; those behind a delimiter as the prefix they share."""
        below = sorted(name for name in self.objects if name.startswith(prefix))
        if not delimiter:
            return below
        heads = (name[len(prefix) :].partition(delimiter) for name in below)
        return list(dict.fromkeys(prefix + head + separator for head, separator, _ in heads))

    def part_of(self, name: str, headers: Mapping[str, str]) -> Answer:
        """The bytes that a `Range` names."""
        data, wanted = (
            self.objects[name],
            re.fullmatch(r"bytes=(\d+)-(\d*)", headers.get("range", "")),
        )
        if wanted is None:
            return Answer(200, data)
        first, last = int(wanted[1]), min(int(wanted[2] or len(data)), len(data) - 1)
        content_range = f"bytes {first}-{last}/{len(data)}"
        return Answer(206, data[first : last + 1], {"Content-Range": content_range})

    def batch(self, request: Request) -> list[Request]:
        """The requests inside a multipart/mixed body."""
        boundary = re.search('boundary="?([^";]+)', request.headers["content-type"])
        assert boundary is not None
        parts = request.body.decode().split(f"--{boundary[1]}")[1:-1]
        inner = []
        for part in parts:
            _, _, message = part.strip().partition("\r\n\r\n")
            line, *lines = message.strip().split("\r\n")
            method, target, _ = line.split(" ")
            pairs = (one.partition(": ") for one in lines)
            headers = {name.lower(): value for name, _, value in pairs}
            inner.append(_request(method, target, headers, b""))
        return inner


def _request(method: str, target: str, headers: Mapping[str, str], body: bytes) -> Request:
    parts = urlsplit(target)
    query = dict(parse_qsl(parts.query.replace("+", "%2B"), keep_blank_values=True))
    return Request(method, parts.path, query, headers, body)


def _mixed(answers: list[Answer], status: int) -> Answer:
    text = ""
    for number, answer in enumerate(answers):
        text += "--answers\r\nContent-Type: application/http\r\n"
        text += f"Content-ID: {number}\r\n\r\nHTTP/1.1 {answer.status} Answer\r\nx-id: 1\r\n\r\n"
    headers = {"Content-Type": "multipart/mixed; boundary=answers"}
    return Answer(status, (text + "--answers--").encode(), headers)


class Azure(Service):
    """Put Blob, Put Block, Put Block List, Get Blob, List Blobs, Delete Blob, Blob Batch."""

    def answer(self, request: Request) -> Answer:
        if not self._is_signed(request):
            return self._error(403, "AuthenticationFailed")
        _, container, name = [*request.path.split("/", 2), ""][:3]
        name = unquote(name)
        if container != BUCKET:
            return self._error(404, "ContainerNotFound")
        operation = (request.method, request.query.get("comp", ""))
        self.methods.add(" ".join(operation).strip())
        match operation:
            case "POST", "batch":
                return _mixed([self.answer(one) for one in self.batch(request)], 202)
            case "GET", "list":
                return self._list(request.query)
            case "PUT", "block":
                self.uploads.setdefault(name, {})[request.query["blockid"]] = request.body
            case "PUT", "blocklist":
                blocks = re.findall("<Latest>([^<]+)</Latest>", request.body.decode())
                uploaded = self.uploads.pop(name)
                self.objects[name] = b"".join(uploaded[block] for block in blocks)
            case "PUT", "":
                assert request.headers["x-ms-blob-type"] == "BlockBlob"
                self.objects[name] = request.body
            case "DELETE", "" if name in self.objects:
                del self.objects[name]
                return Answer(202)
            case "GET", "" if name in self.objects:
                return self.part_of(name, request.headers)
            case _:
                return self._error(404, "BlobNotFound")
        return Answer(
            201, b"", {"ETag": '"0x8DA0A64D66790C3"', "Last-Modified": formatdate(usegmt=True)}
        )

    def _list(self, query: Mapping[str, str]) -> Answer:
        names = self.names(query.get("prefix", ""), query.get("delimiter", ""))
        start = int(query.get("marker") or 0)
        entries = ""
        for name in names[start : start + PAGE]:
            if name.endswith("/"):
                entries += f"<BlobPrefix><Name>{escape(name)}</Name></BlobPrefix>"
                continue
            entries += f"<Blob><Name>{escape(name)}</Name><Properties>"
            entries += f"<Last-Modified>{formatdate(usegmt=True)}</Last-Modified><Etag>0x8DA</Etag>"
            entries += f"<Content-Length>{len(self.objects[name])}</Content-Length>"
            entries += "<Content-Type>application/octet-stream</Content-Type></Properties></Blob>"
        marker = str(start + PAGE) if start + PAGE < len(names) else ""
        text = f"<Blobs>{entries}</Blobs><NextMarker>{marker}</NextMarker>"
        head = '<?xml version="1.0" encoding="utf-8"?>'
        return Answer(200, f"{head}<EnumerationResults>{text}</EnumerationResults>".encode())

    def _error(self, status: int, code: str) -> Answer:
        head = '<?xml version="1.0" encoding="utf-8"?>'
        text = f"{head}<Error><Code>{code}</Code><Message>It is refused.</Message></Error>"
        return Answer(status, text.encode(), {"x-ms-error-code": code})

    def _is_signed(self, request: Request) -> bool:
        """Whether the signature is right: of the account's key, or a shared access signature."""
        if request.query.get("sig") == dict(parse_qsl(SIGNATURE))["sig"]:
            return True
        headers = request.headers
        length = headers.get("content-length", "")
        named = ["content-encoding", "content-language"]
        later = ["content-md5", "content-type", "date", "if-modified-since", "if-match"]
        later += ["if-none-match", "if-unmodified-since", "range"]
        lines = [request.method, *(headers.get(name, "") for name in named)]
        lines += ["" if length == "0" else length, *(headers.get(name, "") for name in later)]
        lines += [f"{n}:{headers[n]}" for n in sorted(headers) if n.startswith("x-ms-")]
        lines += [f"/{ACCOUNT}{request.path}"]
        lines += [f"{name}:{value}" for name, value in sorted(request.query.items())]
        key = base64.b64decode(AZURE_KEY)
        digest = hmac.new(key, "\n".join(lines).encode(), hashlib.sha256).digest()
        expected = f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}"
        return headers.get("authorization") == expected


class Google(Service):
    """The JSON interface, its batches, and the uploads in parts of the XML interface."""

    def answer(self, request: Request) -> Answer:
        if request.path == "/batch/storage/v1":
            self.methods.add("batch")
            token = {"authorization": request.headers.get("authorization", "")}
            inner = (one._replace(headers=token) for one in self.batch(request))
            return _mixed([self.answer(one) for one in inner], 200)
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return self._error(401, "Invalid Credentials")
        path = re.fullmatch(
            "(?:/upload)?/storage/v1/b/([^/]+)/o(?:/(.+))?|/([^/]+)/(.+)", request.path
        )
        assert path is not None, request.path
        if (path[1] or path[3]) != BUCKET:
            return self._error(404, "The specified bucket does not exist.")
        if path[3]:
            return self._part(request, unquote(path[4]))
        name = unquote(path[2] or request.query.get("name", ""))
        match request.method:
            case "POST":
                assert request.query["uploadType"] == "media"
                self.objects[name] = request.body
                return Answer(200, self._about(name))
            case "GET" if not name:
                return self._list(request.query)
            case "GET" if name in self.objects and request.query.get("alt") == "media":
                return self.part_of(name, request.headers)
            case "DELETE" if name in self.objects:
                del self.objects[name]
                return Answer(204)
        return self._error(404, f"No such object: {BUCKET}/{name}")

    def _part(self, request: Request, name: str) -> Answer:
        query = request.query
        self.methods.add(f"{request.method} part")
        if "uploads" in query:
            self.uploads[name] = {}
            text = f"<InitiateMultipartUploadResult><UploadId>{name}</UploadId>"
            return Answer(200, f"{text}</InitiateMultipartUploadResult>".encode())
        if "partNumber" in query:
            self.uploads[query["uploadId"]][query["partNumber"]] = request.body
            return Answer(200, b"", {"ETag": f'"part-{query["partNumber"]}"'})
        numbers = re.findall("<PartNumber>([0-9]+)</PartNumber>", request.body.decode())
        uploaded = self.uploads.pop(query["uploadId"])
        self.objects[name] = b"".join(uploaded[number] for number in numbers)
        result = "<CompleteMultipartUploadResult></CompleteMultipartUploadResult>"
        return Answer(200, result.encode(), {"x-goog-generation": "1"})

    def _about(self, name: str) -> bytes:
        about = {"name": name, "size": str(len(self.objects[name])), "etag": "CKWasoTgyPkCEAE="}
        more = {"updated": "2026-01-02T03:04:05.678Z", "generation": "1", "md5Hash": ""}
        return json.dumps({"kind": "storage#object", "bucket": BUCKET, **about, **more}).encode()

    def _list(self, query: Mapping[str, str]) -> Answer:
        names = self.names(query.get("prefix", ""), query.get("delimiter", ""))
        start = int(query.get("pageToken") or 0)
        page = names[start : start + PAGE]
        answer = {
            "kind": "storage#objects",
            "prefixes": [name for name in page if name.endswith("/")],
            "items": [json.loads(self._about(name)) for name in page if not name.endswith("/")],
        }
        if start + PAGE < len(names):
            answer["nextPageToken"] = str(start + PAGE)
        return Answer(200, json.dumps(answer).encode())

    def _error(self, status: int, message: str) -> Answer:
        error = {"code": status, "message": message, "errors": [{"message": message}]}
        return Answer(status, json.dumps({"error": error}).encode())


class Hadoop(Service):
    """A name node that sends reads and writes on to a data node, which is the same server."""

    address = ""

    def answer(self, request: Request) -> Answer:
        name = unquote(request.path.removeprefix("/webhdfs/v1/")).strip("/")
        if request.path.startswith("/data/"):
            return self._data(request, unquote(request.path.removeprefix("/data/")))
        if request.query.get("user.name") != USER:
            return self._error(401, "SecurityException", "Failed to obtain user group information")
        operation = request.query["op"]
        self.methods.add(operation)
        is_folder = not name or any(one.startswith(f"{name}/") for one in self.objects)
        match operation:
            case "MKDIRS":
                return self._json({"boolean": True})
            case "CREATE":
                assert request.query["noredirect"] == "true"
                return self._json({"Location": f"{self.address}/data/{name}"})
            case "GETFILESTATUS" if is_folder or name in self.objects:
                return self._json({"FileStatus": self._status(name)})
            case "LISTSTATUS_BATCH" if is_folder:
                return self._list(name, request.query.get("startAfter", ""))
            case "OPEN" if name in self.objects:
                offset, length = request.query["offset"], request.query["length"]
                where = f"{self.address}/data/{name}?offset={offset}&length={length}"
                return Answer(307, b"", {"Location": where})
            case "DELETE":
                return self._json({"boolean": self.objects.pop(name, None) is not None})
        return self._error(404, "FileNotFoundException", f"File does not exist: /{name}")

    def _data(self, request: Request, name: str) -> Answer:
        if request.method == "PUT":
            self.objects[name] = request.body
            return Answer(201)
        start = int(request.query["offset"])
        return Answer(200, self.objects[name][start : start + int(request.query["length"])])

    def _status(self, name: str, suffix: str = "") -> dict[str, object]:
        is_file = name in self.objects
        return {
            "pathSuffix": suffix,
            "type": "FILE" if is_file else "DIRECTORY",
            "length": len(self.objects.get(name, b"")),
            "modificationTime": 1320171722771,
        }

    def _list(self, name: str, after: str) -> Answer:
        prefix = f"{name}/" if name else ""
        entries = [one.removeprefix(prefix).rstrip("/") for one in self.names(prefix, "/")]
        left = [entry for entry in entries if entry > after]
        statuses = [self._status(prefix + entry, entry) for entry in left[:PAGE]]
        partial = {"FileStatuses": {"FileStatus": statuses}}
        listing = {"partialListing": partial, "remainingEntries": len(left[PAGE:])}
        return self._json({"DirectoryListing": listing})

    def _json(self, value: object, status: int = 200) -> Answer:
        return Answer(status, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _error(self, status: int, exception: str, message: str) -> Answer:
        java = {"javaClassName": f"java.io.{exception}", "message": message}
        return self._json({"RemoteException": {"exception": exception, **java}}, status)


@contextmanager
def answering(service: Service) -> Iterator[str]:
    """Serves on loopback; yields the URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Else each answer waits for the delayed acknowledgement of its head.
        disable_nagle_algorithm = True

        def respond(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = self.rfile.read(int(headers.get("content-length", 0)))
            with service.lock:
                if service.busy and len(body) > SMALL_BYTES:
                    service.busy -= 1
                    answer = Answer(503)
                else:
                    answer = service.answer(_request(self.command, self.path, headers, body))
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        def __getattr__(self, name: str) -> Callable[[], None]:
            if name.startswith("do_"):
                return self.respond
            raise AttributeError(name)

        def log_message(self, *_: object) -> None:
            pass

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as port:
        url = f"http://127.0.0.1:{port}"
        if isinstance(service, Hadoop):
            service.address = url
        yield url
