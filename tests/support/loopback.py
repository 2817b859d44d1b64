"""Servers on loopback that play recorded bytes to the providers' own clients: HTTP answers and WebSocket messages."""

import asyncio
import datetime as dt
import ipaddress
import ssl
import tempfile
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path

import websockets
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


@asynccontextmanager
async def http_server(body, status=200, content_type="text/event-stream", pieces=700):
    """Give the address of a server that answers each request with these bytes, in pieces."""

    async def answer(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        length = [line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
        if length:
            await reader.readexactly(int(length[0]))
        writer.write(f"HTTP/1.1 {status} X\r\nContent-Type: {content_type}\r\nConnection: close\r\n\r\n".encode())
        for start in range(0, len(body), pieces):
            writer.write(body[start : start + pieces])
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


@asynccontextmanager
async def socket_server(messages, *, after_setup=False, tls=None):
    """Give the address of a WebSocket server that sends these messages and closes.

    `after_setup` waits for the client's first message, as the Live API does.
    """

    async def play(socket):
        if after_setup:
            await socket.recv()
        for message in messages:
            await socket.send(message)
        await socket.close()

    async with websockets.serve(play, "127.0.0.1", 0, ssl=tls) as server:
        yield f"{'wss' if tls else 'ws'}://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}"


@cache
def tls_contexts():
    """Contexts of a server and of a client that trusts it alone."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "loopback")])
    day = dt.timedelta(days=1)
    now = dt.datetime.now(dt.UTC)
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(x509.random_serial_number()).not_valid_before(now - day).not_valid_after(now + day)
        .add_extension(names, critical=False).sign(key, hashes.SHA256())
    ).public_bytes(serialization.Encoding.PEM)  # fmt: skip
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "certificate.pem"
        path.write_bytes(certificate + key.private_bytes(*form))
        server.load_cert_chain(path)
    return server, ssl.create_default_context(cadata=certificate.decode())
