// A session of SMTP over TLS that is logged in, and sends bytes as they are.
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { retryCheck } from '../wait_for';

export interface RawSession {
  /** Resolves with what came, once it matches or the session has ended. */
  talk(bytes: string, until: RegExp): Promise<string>;
  close(): void;
}

/** @param login for AUTH PLAIN */
export async function openRawSession(port: number, login: string): Promise<RawSession> {
  let socket: Socket = connect(port, '127.0.0.1');
  let text = '';
  let ended = false;
  const listen = (): void => {
    socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
    socket.on('error', () => (ended = true));
    socket.on('close', () => (ended = true));
  };
  const talk = async (bytes: string, until: RegExp): Promise<string> => {
    text = '';
    if (bytes) socket.write(bytes, 'latin1');
    await retryCheck(async () => {
      if (!ended) expect(text).toMatch(until);
    });
    return text;
  };
  listen();
  await talk('', /^220/);
  await talk('EHLO client.example\r\n', /^250 /m);
  await talk('STARTTLS\r\n', /^220/);
  socket.removeAllListeners();
  socket = connectTls({ socket, rejectUnauthorized: false });
  listen();
  await talk('EHLO client.example\r\n', /^250 /m);
  await talk(`AUTH PLAIN ${login}\r\n`, /^235/);
  return { talk, close: () => void socket.destroy() };
}
