"""A gateway that has its requests verified by the package http-message-signatures.

Prints its port, then answers 200 to what it accepts, and otherwise 401 with the reason. Keys come as
JSON on standard input: the name of a key to its algorithm and the key, which is public or shared.
"""

import base64
import http.server
import json
import sys

from http_message_signatures import HTTPMessageVerifier, HTTPSignatureKeyResolver, algorithms

ALGORITHMS = {
    "hmac-sha256": algorithms.HMAC_SHA256,
    "ed25519": algorithms.ED25519,
    "ecdsa-p256-sha256": algorithms.ECDSA_P256_SHA256,
    "rsa-v1_5-sha256": algorithms.RSA_V1_5_SHA256,
    "rsa-pss-sha512": algorithms.RSA_PSS_SHA512,
}
KEYS = json.loads(sys.stdin.readline())


class Keys(HTTPSignatureKeyResolver):
    """Finds keys by their names."""

    def resolve_public_key(self, key_id):
        algorithm, key = KEYS[key_id]
        return base64.b64decode(key) if algorithm == "hmac-sha256" else key.encode()

    def resolve_private_key(self, key_id):
        raise NotImplementedError


class Message:
    """A request as the verifier wants to see it."""

    def __init__(self, method, url, headers):
        self.method, self.url, self.headers = method, url, headers


class Gateway(http.server.BaseHTTPRequestHandler):
    """Verifies each request, whatever it asks for."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        url = "http://" + self.headers["host"] + self.path
        # Which key it is follows from the connection in a real gateway, and is not signed here.
        algorithm = ALGORITHMS[KEYS[self.headers["x-key"]][0]]
        verifier = HTTPMessageVerifier(signature_algorithm=algorithm, key_resolver=Keys())
        try:
            verified = verifier.verify(
                Message(self.command, url, self.headers),
                require_components=("@method", "@target-uri", "content-digest"),
                body=body,
            )
            assert len(verified) == 1
        except Exception as error:  # pylint: disable=broad-except
            reason = f"{type(error).__name__}: {error!r}".encode()
            self.send_response(401)
        else:
            reason = b""
            self.send_response(200)
        self.send_header("content-length", str(len(reason)))
        self.end_headers()
        self.wfile.write(reason)

    def log_message(self, *_):
        """Says nothing."""


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Gateway)
print(server.server_address[1], flush=True)
server.serve_forever()
