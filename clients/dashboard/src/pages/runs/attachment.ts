// The WebSocket of a run (platform.run.v1): a byte for the channel, then the content. After a broken connection it
// connects again, and the output begins anew with its last part.

const PROTOCOL = 'platform.run.v1';
const CHANNEL = { stdin: 0, stdout: 1, stderr: 2, control: 3 } as const;
const REPLAY_BYTES = 256 * 1_024;
const RETRY_MS = [250, 500, 1_000, 2_000, 5_000, 10_000];
/** RFC 6455 section 7.4.1. */
const CODES = { normal: 1000, policy: 1008 };
/** Browsers cannot stop a WebSocket from sending: with so much to show, the connection is closed till it is shown. */
const BACKLOG_BYTES = 4 * 1_024 * 1_024;

export type Exit = { code: number | null; signal: string | null };

export interface Listener {
  /** The output begins anew. */
  clear(): void;
  /** @param shown is to be called when the bytes are on the screen */
  write(bytes: Uint8Array, shown: () => void): void;
  ready(isWriter: boolean): void;
  state(state: 'connecting' | 'live' | 'waiting' | 'ended'): void;
  message(text: string): void;
  exit(exit: Exit | null): void;
}

/** Takes part in a run until it ends or `close` is called. */
export class Attachment {
  private ws: WebSocket | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private failures = 0;
  private backlog = 0;
  private isOver = false;
  private isWriter = false;

  constructor(
    private readonly path: string,
    private readonly listener: Listener,
  ) {}

  connect(): void {
    clearTimeout(this.timer);
    this.listener.state(this.failures ? 'waiting' : 'connecting');
    const address = new URL(`${this.path}?replay_bytes=${REPLAY_BYTES}`, location.href.replace(/^http/, 'ws'));
    const ws = (this.ws = new WebSocket(address, PROTOCOL));
    ws.binaryType = 'arraybuffer';
    ws.addEventListener('open', () => this.listener.clear());
    ws.addEventListener('message', ({ data }) => this.ws === ws && this.take(ws, new Uint8Array(data as ArrayBuffer)));
    ws.addEventListener('close', ({ code, reason }) => this.ws === ws && this.closed(code, reason));
  }

  input(bytes: Uint8Array): void {
    if (this.isWriter) this.send(CHANNEL.stdin, bytes);
  }

  resize(rows: number, columns: number): void {
    if (this.isWriter) this.send(CHANNEL.control, encode(JSON.stringify({ type: 'resize', rows, columns })));
  }

  /** Leaves the run, which goes on. */
  close(): void {
    this.isOver = true;
    clearTimeout(this.timer);
    this.ws?.close(CODES.normal);
  }

  private send(channel: number, bytes: Uint8Array): void {
    if (this.ws?.readyState !== WebSocket.OPEN) return;
    const message = new Uint8Array(bytes.length + 1);
    message[0] = channel;
    message.set(bytes, 1);
    this.ws.send(message);
  }

  private take(ws: WebSocket, data: Uint8Array): void {
    const content = data.subarray(1);
    if (data[0] === CHANNEL.control) return this.obey(JSON.parse(new TextDecoder().decode(content)) as Control);
    if (data[0] !== CHANNEL.stdout && data[0] !== CHANNEL.stderr) return;
    this.backlog += content.length;
    this.listener.write(content, () => {
      this.backlog -= content.length;
      if (this.backlog === 0 && this.ws === null && !this.isOver) this.connect();
    });
    if (this.backlog <= BACKLOG_BYTES) return;
    this.ws = null;
    ws.close(CODES.normal);
    this.listener.message('The command writes faster than this page can show. A part of its output is left out.');
  }

  private obey(control: Control): void {
    if (control.type === 'ready') {
      this.failures = 0;
      this.isWriter = control.writer;
      this.listener.state('live');
      this.listener.ready(control.writer);
    }
    if (control.type === 'error') this.listener.message(control.message);
    if (control.type === 'exit') this.end({ code: control.code, signal: control.signal });
  }

  private closed(code: number, reason: string): void {
    this.isWriter = false;
    if (this.isOver) return;
    if (code === CODES.normal) return this.end(null);
    if (code === CODES.policy) {
      this.listener.message(`The server has ended the connection (${reason}).`);
      return this.end(null);
    }
    if (this.failures >= RETRY_MS.length) {
      this.listener.message('The connection broke off. Reload the page to try again.');
      return this.end(null);
    }
    this.listener.state('waiting');
    this.timer = setTimeout(() => this.connect(), RETRY_MS[this.failures]);
    this.failures += 1;
  }

  private end(exit: Exit | null): void {
    this.isOver = true;
    this.listener.state('ended');
    this.listener.exit(exit);
  }
}

type Control =
  | { type: 'ready'; writer: boolean; tty: boolean }
  | ({ type: 'exit' } & Exit)
  | { type: 'error'; message: string };

export function encode(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
