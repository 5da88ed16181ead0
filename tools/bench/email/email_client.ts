// SMTP client for bench:email: many connections over TLS, each message one transaction, commands pipelined. Sends the
// same bytes to every server. Runs in a separate process.
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

export interface ClientPlan {
  port: number;
  count: number;
  connections: number;
  bytes: number;
  from: string;
  /** For AUTH PLAIN; null: none. */
  login: string | null;
}

const DESTINATIONS = 20;
const MESSAGES_PER_CONNECTION = 100;

/** Sends all messages; resolves with the milliseconds until the last one is acknowledged. */
export async function sendAll(plan: ClientPlan): Promise<number> {
  const began = performance.now();
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < plan.count) {
      const session = await open(plan);
      for (let sent = 0; sent < MESSAGES_PER_CONNECTION && next < plan.count; sent += 1)
        await transaction(session, plan, (next += 1));
      session.socket.end('QUIT\r\n');
    }
  };
  await Promise.all(Array.from({ length: plan.connections }, work));
  return performance.now() - began;
}

interface Session {
  socket: Socket;
  reply(): Promise<string>;
}

async function open({ port, login }: ClientPlan): Promise<Session> {
  const plain = sessionOf(connect({ port, host: '127.0.0.1', noDelay: true }));
  await expectReply(plain, '220');
  await command(plain, 'EHLO bench.example', '250');
  await command(plain, 'STARTTLS', '220');
  plain.socket.removeAllListeners('data');
  const session = sessionOf(connectTls({ socket: plain.socket, rejectUnauthorized: false }));
  await command(session, 'EHLO bench.example', '250');
  if (login !== null) await command(session, `AUTH PLAIN ${login}`, '235');
  return session;
}

async function transaction(session: Session, { from, bytes }: ClientPlan, number: number): Promise<void> {
  const to = `r${number}@d${number % DESTINATIONS}.example`;
  session.socket.write(`MAIL FROM:<${from}>\r\nRCPT TO:<${to}>\r\nDATA\r\n`);
  for (const code of ['250', '250', '354']) await expectReply(session, code);
  const head = `From: <${from}>\r\nTo: <${to}>\r\nSubject: Message ${number}\r\nMIME-Version: 1.0\r\n\r\n`;
  session.socket.write(`${head}${'A line of text as people write them, more or less.\r\n'.repeat(bytes / 52)}.\r\n`);
  await expectReply(session, '250');
}

function sessionOf(socket: Socket): Session {
  const replies: string[] = [];
  const waiting: { resolve(text: string): void; reject(error: Error): void }[] = [];
  let text = '';
  let broken: Error | null = null;
  const fail = (error: Error): void => {
    broken = error;
    waiting.splice(0).forEach(({ reject }) => reject(error));
  };
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
    for (
      let match = /^(?:\d{3}-.*\r\n)*\d{3} .*\r\n/.exec(text);
      match;
      match = /^(?:\d{3}-.*\r\n)*\d{3} .*\r\n/.exec(text)
    ) {
      text = text.slice(match[0].length);
      const first = waiting.shift();
      if (first) first.resolve(match[0]);
      else replies.push(match[0]);
    }
  });
  socket.on('error', fail);
  socket.on('close', () => fail(new Error('the connection has ended')));
  const reply = (): Promise<string> =>
    new Promise((resolve, reject) => {
      const known = replies.shift();
      if (known !== undefined) return resolve(known);
      if (broken) return reject(broken);
      waiting.push({ resolve, reject });
    });
  return { socket, reply };
}

async function command(session: Session, line: string, code: string): Promise<void> {
  session.socket.write(`${line}\r\n`);
  await expectReply(session, code);
}

async function expectReply({ reply }: Session, code: string): Promise<void> {
  const said = await reply();
  if (!said.startsWith(code)) throw new Error(`expected ${code}, got ${said}`);
}

if (require.main === module)
  process.once('message', (plan: ClientPlan) => {
    sendAll(plan).then(
      (ms) => process.send?.({ ms }, () => process.exit(0)),
      (error: Error) => process.send?.({ error: error.message }, () => process.exit(1)),
    );
  });
