// SMTP line by line: what a client says, and what it must be told.
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

const WITHIN_MS = 10_000;

/** Sends each line with CR LF behind it, and expects the answer to match. `tls`: STARTTLS goes first. */
export async function smtpDialogue(
  { port, tls }: { port: number; tls: boolean },
  steps: readonly (readonly [string, RegExp])[],
): Promise<void> {
  let socket: Socket = connect(port, '127.0.0.1');
  let answers = reader(socket);
  try {
    expect(await answers()).toMatch(/^220/);
    if (tls) {
      socket.write('EHLO client.example\r\n');
      await answers();
      socket.write('STARTTLS\r\n');
      expect(await answers()).toMatch(/^220/);
      socket.removeAllListeners();
      socket = connectTls({ socket, rejectUnauthorized: false });
      answers = reader(socket);
    }
    for (const [line, wanted] of steps) {
      socket.write(`${line}\r\n`, 'latin1');
      const said = await answers();
      expect([line.slice(0, 60), said]).toEqual([line.slice(0, 60), expect.stringMatching(wanted)]);
    }
  } finally {
    socket.destroy();
  }
}

/** Whole replies, one by one. */
function reader(socket: Socket): () => Promise<string> {
  let text = '';
  let ended = false;
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
  socket.on('close', () => (ended = true));
  socket.on('error', () => (ended = true));
  return async () => {
    for (const until = Date.now() + WITHIN_MS; Date.now() < until;) {
      const whole = /^(?:\d{3}-.*\r\n)*\d{3}(?: .*)?\r\n/.exec(text)?.[0];
      if (whole) {
        text = text.slice(whole.length);
        return whole;
      }
      if (ended) return 'closed';
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    throw new Error('no answer');
  };
}
