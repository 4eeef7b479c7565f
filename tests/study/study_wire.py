"""A wire between a study and PostgreSQL, which counts messages and can be cut."""

import selectors
import socket
import threading
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from chainscout.study import Study

#: How the server's message begins that it is ready for the next one.
READY = b"Z\0\0\0\5"


class Wire:
    """A socket between a client and the server, which counts the client's messages that follow an answer.

    ``cut``: the connection ends after so many further messages, before the client has the answer to the last one.
    ``before_answer``: called once, when the server has answered the next message, before the client has the answer.
    ``connections``: how many connections the client has made; a request to cancel a statement is one.
    """

    def __init__(self, folder, server):
        self.folder, self._server = folder, server
        self.turns = 0
        self.cut = 0
        self.before_answer = None
        self.connections = 0
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / Path(server).name))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._server)
            threading.Thread(target=self._pass_on, args=(client, server), daemon=True).start()

    def _pass_on(self, client, server):
        others, last, is_cut = {client: server, server: client}, None, False
        with suppress(ConnectionError), selectors.DefaultSelector() as selector, client, server:
            for end in others:
                selector.register(end, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    data = key.fileobj.recv(1 << 16)
                    if not data:
                        return
                    if key.fileobj is client and last is not client:
                        self.turns += 1
                        self.cut -= 1
                        is_cut = is_cut or self.cut == 0
                    last = key.fileobj
                    if last is server and self.before_answer is not None:
                        call, self.before_answer = self.before_answer, None
                        call()
                    if is_cut and last is server:
                        if data[-6:-1] == READY:
                            return
                    else:
                        others[last].sendall(data)

    def close(self):
        self._listener.close()


@contextmanager
def watched(server, folder, address):
    """An open study, and the wire to it."""
    folder.mkdir()
    there = address.replace(str(server.server.directory), str(folder))
    with closing(Wire(folder, server.server.socket)) as wire, Study.open(there) as study:
        yield study, wire
