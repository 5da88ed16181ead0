// Receivers of notifications: an HTTPS server that keeps what it got, and a mail server.
import { createServer } from 'node:https';
import { createServer as createTcp, type AddressInfo } from 'node:net';
import type { Leaf } from '../databases/authority';

export interface Received {
  path: string;
  headers: Record<string, string | string[] | undefined>;
  text: string;
  /* oxlint-disable-next-line typescript/no-explicit-any -- whatever was sent */
  body: any;
}

export interface Receiver {
  port: number;
  got: Received[];
  /** What it answers at a path: a status, or several for one request after the other. Default 200. */
  answers: Map<string, { status: number; headers?: Record<string, string>; body?: string }[]>;
  at(path: string): Received[];
  close(): Promise<void>;
}

export async function startReceiver(leaf: Leaf): Promise<Receiver> {
  const receiver: Receiver = {
    ...{ port: 0, got: [], answers: new Map(), close: () => Promise.resolve() },
    at: (path) => receiver.got.filter((one) => one.path === path),
  };
  const server = createServer(leaf, (request, response) => {
    let text = '';
    request.setEncoding('utf8');
    request.on('data', (chunk: string) => (text += chunk));
    request.on('end', () => {
      const path = request.url ?? '';
      receiver.got.push({ path, headers: request.headers, text, body: JSON.parse(text) as unknown });
      const { status, headers, body } = receiver.answers.get(path)?.shift() ?? { status: 200 };
      response.writeHead(status, headers).end(body ?? 'ok');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  receiver.port = (server.address() as AddressInfo).port;
  receiver.close = () =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return receiver;
}

export interface MailServer {
  port: number;
  mails: { from: string; to: string[]; data: string }[];
  /** Said to RCPT TO instead of 250. */
  refusal: string | null;
  close(): Promise<void>;
}

/** As much of RFC 5321 as a message needs. */
export async function startMailServer(): Promise<MailServer> {
  const state: MailServer = { port: 0, mails: [], refusal: null, close: () => Promise.resolve() };
  const server = createTcp((socket) => {
    let [buffer, data] = ['', null as string | null];
    let mail = { from: '', to: [] as string[], data: '' };
    const send = (line: string): void => void socket.write(`${line}\r\n`);
    const command = (line: string): void => {
      if (/^(EHLO|HELO)/i.test(line)) return send('250 mail.example.com');
      if (/^MAIL FROM/i.test(line)) mail = { from: line, to: [], data: '' };
      if (/^RCPT TO/i.test(line)) {
        if (state.refusal) return send(state.refusal);
        mail.to.push(line.replace(/^RCPT TO:<([^>]*)>.*/i, '$1'));
      }
      if (/^DATA/i.test(line)) {
        data = '';
        return send('354 go ahead');
      }
      if (/^QUIT/i.test(line)) return void socket.end('221 bye\r\n');
      send('250 ok');
    };
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => {
      buffer += chunk.toString('utf8');
      for (let end = buffer.indexOf('\r\n'); end >= 0; end = buffer.indexOf('\r\n')) {
        const line = buffer.slice(0, end);
        buffer = buffer.slice(end + 2);
        if (data === null) command(line);
        else if (line === '.') {
          state.mails.push({ ...mail, data });
          data = null;
          send('250 queued');
        } else data += `${line}\n`;
      }
    });
    send('220 mail.example.com');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  state.port = (server.address() as AddressInfo).port;
  state.close = () => new Promise((resolve) => server.close(() => resolve()));
  return state;
}

/** Waits until something holds. */
export async function until<T>(
  find: () => Promise<T | null | undefined | false> | T | null | undefined | false,
  ms = 30_000,
): Promise<T> {
  const end = Date.now() + ms;
  for (;;) {
    const found = await find();
    if (found) return found;
    if (Date.now() > end) throw new Error(`not within ${ms} ms: ${find.toString()}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const LANES = 50;

/** Sends requests as fast as they are answered, over as many connections as a busy sender has. Answers all statuses. */
export async function storm(count: number, send: () => Promise<number>): Promise<Set<number>> {
  const statuses = new Set<number>();
  let left = count;
  const lane = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      statuses.add(await send());
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  return statuses;
}
