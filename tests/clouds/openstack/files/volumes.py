"""Block storage without any volume: the EC2 API asks for it before it starts machines."""

import http.server
import json
import sys

ADDRESS = sys.argv[1]
VERSION = {
    "id": "v3.0",
    "status": "CURRENT",
    "version": "3.68",
    "min_version": "3.0",
    "links": [{"rel": "self", "href": f"http://{ADDRESS}:8776/v3/"}],
}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        listing = "volumes" in self.path or "snapshots" in self.path
        answer = {"volumes": [], "snapshots": []} if listing else {"versions": [VERSION]}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


http.server.ThreadingHTTPServer((ADDRESS, 8776), Handler).serve_forever()
