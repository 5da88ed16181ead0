// Stricter validation than the SMTP library: line ends, characters and arguments of commands, addresses, and no AUTH
// before TLS.
import { isUtf8 } from 'node:buffer';
import type { SMTPServer } from 'smtp-server';
import { parsePath } from './message/paths';

type Callback = () => void;

interface Parser {
  _dataMode: boolean;
  _write(chunk: Buffer, encoding: string, next: (error?: Error) => void): void;
  oncommand(command: Buffer, callback: Callback): void;
}

interface Connection {
  secure: boolean;
  /** Handler of a line that is not a command: the response to an AUTH challenge. */
  _nextHandler: unknown;
  _unrecognizedCommands: number;
  _parser: Parser | false | null;
  _createParser(): Parser;
  _isSupported(command: string): boolean;
  _parseAddressCommand(name: string, command: Buffer): unknown;
  handler_EHLO(command: Buffer, callback: Callback): void;
  send(code: number, text: string): void;
  close(): void;
}

interface Patched {
  connections: Set<Connection>;
  connect(socket: unknown, options: unknown): void;
  options: { disabledCommands: string[] };
}

const CR = 13;
const LF = 10;
/** Same as the limit of unrecognised commands. */
const MISTAKES_MAX = 10;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** @throws Error where the internals of the library have changed */
export function makeStrict(server: SMTPServer): void {
  const patched = server as unknown as Patched;
  const takesLogin = !patched.options.disabledCommands.includes('AUTH');
  const connect = patched.connect.bind(patched);
  patched.connect = (socket, options) => {
    const before = new Set(patched.connections);
    connect(socket, options);
    for (const connection of patched.connections) if (!before.has(connection)) watch(connection, takesLogin);
  };
}

function watch(connection: Connection, takesLogin: boolean): void {
  if (!connection._parser) throw new Error('smtp-server has changed: its connections have no parser');
  strict(connection, connection._parser);
  // STARTTLS creates a new parser.
  const create = connection._createParser.bind(connection);
  connection._createParser = () => strict(connection, create());
  connection._parseAddressCommand = (name, command) =>
    parsePath(name as 'mail from' | 'rcpt to', command.toString(), { takesLogin });
  offerLoginAfterTls(connection);
}

/** A client that is offered AUTH may send its password at once, so AUTH is not offered before TLS (RFC 4954 §4). */
function offerLoginAfterTls(connection: Connection): void {
  const greet = connection.handler_EHLO.bind(connection);
  const isSupported = connection._isSupported.bind(connection);
  let isGreeting = false;
  connection._isSupported = (command) =>
    !(isGreeting && command === 'AUTH' && !connection.secure) && isSupported(command);
  connection.handler_EHLO = (command, callback) => {
    isGreeting = true;
    try {
      greet(command, callback);
    } finally {
      isGreeting = false;
    }
  };
}

function strict(connection: Connection, parser: Parser): Parser {
  const write = parser._write.bind(parser);
  const run = parser.oncommand.bind(parser);
  let last = 0;
  parser._write = (chunk, encoding, next) => {
    if (!parser._dataMode && hasBareLine(chunk, last)) {
      end(connection, '5.5.2 Lines end with CR LF.');
      return next();
    }
    if (chunk.length) last = chunk[chunk.length - 1] as number;
    write(chunk, encoding, next);
  };
  parser.oncommand = (command, callback) => {
    if (hasControl(command)) {
      end(connection, '5.5.2 Commands have no control characters.');
      return callback();
    }
    const [code, text] = mistakeOf(connection, command) ?? [];
    if (!code) return run(command, callback);
    connection._nextHandler = false;
    connection._unrecognizedCommands += 1;
    if (connection._unrecognizedCommands >= MISTAKES_MAX) connection.send(421, '4.7.0 Too many mistakes.');
    else connection.send(code, text as string);
    setImmediate(callback);
  };
  return parser;
}

function end(connection: Connection, text: string): void {
  connection.send(500, text);
  connection.close();
}

function mistakeOf({ _nextHandler: isAnswer }: Connection, command: Buffer): [number, string] | null {
  if (!isUtf8(command)) return [500, '5.5.2 The command is not UTF-8.'];
  const line = command.toString();
  // RFC 4954 §4: invalid base64 is rejected, not decoded leniently.
  const [verb = '', ...rest] = line.trim().split(' ');
  const token = isAnswer ? line.trim() : /^AUTH$/i.test(verb) ? (rest[1] ?? '') : '';
  if (token !== '*' && token !== '=' && !BASE64.test(token)) return [501, '5.5.2 The answer is not valid base64.'];
  if (!isAnswer && rest.length && /^(DATA|RSET|QUIT)$/i.test(verb))
    return [501, `5.5.4 ${verb.toUpperCase()} takes no parameters.`];
  return null;
}

function hasBareLine(chunk: Buffer, last: number): boolean {
  for (let at = chunk.indexOf(LF); at !== -1; at = chunk.indexOf(LF, at + 1))
    if ((at === 0 ? last : chunk[at - 1]) !== CR) return true;
  return false;
}

/** Includes a bare CR. Sloppy clients use tabs as white space. */
function hasControl(command: Buffer): boolean {
  return command.some((byte) => (byte < 32 && byte !== 9) || byte === 127);
}
