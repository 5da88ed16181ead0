// Commands end with CR LF. The server's parser takes a bare LF too, which is how a message smuggled through a lenient
// server becomes commands here; such a session is ended.
import type { SMTPServer } from 'smtp-server';

interface Parser {
  _dataMode: boolean;
  _write(chunk: Buffer, encoding: string, next: (error?: Error) => void): void;
}

interface Connection {
  _parser: Parser | false | null;
  _createParser(): Parser;
  send(code: number, text: string): void;
  close(): void;
}

interface Patched {
  connections: Set<Connection>;
  connect(socket: unknown, options: unknown): void;
}

const CR = 13;
const LF = 10;

export function refuseBareLines(server: SMTPServer): void {
  const patched = server as unknown as Patched;
  const connect = patched.connect.bind(patched);
  patched.connect = (socket, options) => {
    const before = new Set(patched.connections);
    connect(socket, options);
    for (const connection of patched.connections) if (!before.has(connection)) watch(connection);
  };
}

function watch(connection: Connection): void {
  if (!connection._parser) throw new Error('smtp-server has changed: its connections have no parser');
  strict(connection, connection._parser);
  // STARTTLS begins with a new one.
  const create = connection._createParser.bind(connection);
  connection._createParser = () => strict(connection, create());
}

function strict(connection: Connection, parser: Parser): Parser {
  const write = parser._write.bind(parser);
  let last = 0;
  parser._write = (chunk, encoding, next) => {
    if (!parser._dataMode && hasBareLine(chunk, last)) {
      connection.send(500, '5.5.2 Lines end with CR LF.');
      connection.close();
      return next();
    }
    if (chunk.length) last = chunk[chunk.length - 1] as number;
    write(chunk, encoding, next);
  };
  return parser;
}

function hasBareLine(chunk: Buffer, last: number): boolean {
  for (let at = chunk.indexOf(LF); at !== -1; at = chunk.indexOf(LF, at + 1))
    if ((at === 0 ? last : chunk[at - 1]) !== CR) return true;
  return false;
}
