// Handing messages to other mail servers: connections that are used again, and what their answers mean.
import SMTPConnection from 'nodemailer/lib/smtp-connection';
import type { Readable } from 'node:stream';

/** Where a message goes: one server, by address. */
export interface Hop {
  /** Name or address to connect to. */
  host: string;
  port: number;
  /** TLS from the start. */
  secure: boolean;
  /** Name in the certificate. */
  servername: string;
  /** `required`: with a certificate that is valid for the name (MTA-STS, smarthosts); else TLS where it is offered. */
  tls: 'required' | 'opportunistic';
  auth: { user: string; pass: string } | null;
  /** Roots to trust beside the usual ones, PEM. */
  ca: string | null;
}

export interface Outbound {
  from: string;
  to: string;
  size: number;
  content(): Readable;
}

/** `later`: worth another attempt; `never`: refused for good. */
export interface HopResult {
  kind: 'delivered' | 'later' | 'never';
  code: number | null;
  response: string;
  /** The server itself could not be used: the next one may be tried, and the destination left alone for a while. */
  isUnreachable: boolean;
}

export interface Transport {
  send(hop: Hop, message: Outbound): Promise<HopResult>;
  close(): void;
}

const CONNECT_MS = 30_000;
const IDLE_MS = 5_000;
const SILENCE_MS = 120_000;
/** RFC 5321 §4.5.3.2.6 allows ten minutes after the end of a message; a server that needs more than two is left. */
const ATTEMPT_MS = 5 * 60_000;
const MESSAGES_PER_CONNECTION = 100;
const RESPONSE_CHARACTERS = 500;

interface Open {
  connection: SMTPConnection;
  used: number;
  idle: NodeJS.Timeout | null;
  isBroken: boolean;
}

/** Connections of one process, by where they lead. */
class Connections {
  private readonly idle = new Map<string, Open[]>();
  private readonly all = new Set<Open>();

  constructor(private readonly name: string) {}

  async acquire(key: string, hop: Hop): Promise<Open> {
    for (let known = this.idle.get(key)?.pop(); known; known = this.idle.get(key)?.pop()) {
      if (known.idle) clearTimeout(known.idle);
      if (!known.isBroken) return known;
    }
    const open: Open = { connection: newConnection(this.name, hop), used: 0, idle: null, isBroken: false };
    this.all.add(open);
    open.connection.on('error', () => this.drop(open));
    open.connection.once('end', () => this.drop(open));
    await connect(open.connection, hop).catch((error: unknown) => {
      this.drop(open);
      throw error;
    });
    return open;
  }

  release(key: string, open: Open): void {
    if (open.isBroken) return;
    if (open.used >= MESSAGES_PER_CONNECTION) return this.quit(open);
    const waiting = this.idle.get(key) ?? [];
    this.idle.set(key, waiting);
    waiting.push(open);
    open.idle = setTimeout(() => {
      waiting.splice(waiting.indexOf(open), 1);
      if (!waiting.length) this.idle.delete(key);
      this.quit(open);
    }, IDLE_MS);
  }

  drop(open: Open): void {
    if (open.idle) clearTimeout(open.idle);
    open.isBroken = true;
    this.all.delete(open);
    open.connection.close();
  }

  dropAll(): void {
    for (const open of [...this.all]) this.drop(open);
  }

  private quit(open: Open): void {
    open.connection.quit();
    setTimeout(() => this.drop(open), 1_000).unref();
  }
}

/** @param name of this host, as it says EHLO */
export function openTransport(name: string): Transport {
  const connections = new Connections(name);
  return {
    async send(hop, message) {
      const key = `${hop.host} ${hop.port} ${hop.servername} ${hop.tls} ${hop.auth?.user ?? ''}`;
      let open: Open;
      try {
        open = await connections.acquire(key, hop);
      } catch (error) {
        return failureOf(error as SmtpError, true);
      }
      const result = await deliver(open, message);
      // A session that broke off in the middle is not used again.
      if (result.code === null) connections.drop(open);
      else
        await reset(open).then(
          () => connections.release(key, open),
          () => connections.drop(open),
        );
      return result;
    },
    close: () => connections.dropAll(),
  };
}

type SmtpError = Error & { code?: string; responseCode?: number; response?: string; command?: string };

function newConnection(name: string, { host, port, secure, servername, tls, ca }: Hop): SMTPConnection {
  const isRequired = tls === 'required';
  return new SMTPConnection({
    ...{ host, port, secure, name, logger: false, dnsTimeout: CONNECT_MS },
    ...{ requireTLS: isRequired && !secure, opportunisticTLS: !isRequired },
    ...{ connectionTimeout: CONNECT_MS, greetingTimeout: CONNECT_MS, socketTimeout: SILENCE_MS },
    tls: { servername, rejectUnauthorized: isRequired, minVersion: 'TLSv1.2', ...(ca && { ca }) },
  });
}

function connect(connection: SMTPConnection, { auth }: Hop): Promise<void> {
  return new Promise((resolve, reject) => {
    connection.once('error', reject);
    connection.connect((error) => {
      if (error) return reject(error);
      if (!auth) return resolve();
      connection.login(auth, (failure) => (failure ? reject(failure) : resolve()));
    });
  });
}

function deliver(open: Open, { from, to, size, content }: Outbound): Promise<HopResult> {
  return new Promise((resolve) => {
    const { connection } = open;
    const stream = content();
    const end = (result: HopResult): void => {
      clearTimeout(timer);
      connection.off('error', broke);
      stream.destroy();
      resolve(result);
    };
    const broke = (error: SmtpError): void => end(failureOf(error, false));
    const timer = setTimeout(() => {
      connection.close();
      broke(new Error('The server took too long.'));
    }, ATTEMPT_MS);
    connection.once('error', broke);
    stream.once('error', (error) => {
      connection.close();
      broke(error);
    });
    open.used += 1;
    connection.send({ from, to, size, use8BitMime: true }, stream, (error, info) =>
      end(error ? failureOf(error as SmtpError, false) : successOf(info as { response?: string })),
    );
  });
}

function reset({ connection, isBroken }: Open): Promise<void> {
  if (isBroken) return Promise.reject(new Error('the connection has ended'));
  return new Promise((resolve, reject) => connection.reset((error) => (error ? reject(error) : resolve())));
}

function successOf({ response = '' }: { response?: string }): HopResult {
  return { kind: 'delivered', code: 250, response: plain(response), isUnreachable: false };
}

function failureOf(error: SmtpError, isConnecting: boolean): HopResult {
  const code = error.responseCode ?? null;
  const response = plain(error.response ?? `${error.message} (${error.code ?? 'no code'})`);
  // Credentials that a smarthost refuses are the operator's to mend, not the sender's.
  const isFinal = code !== null && code >= 500 && !isConnecting && error.code !== 'EAUTH';
  return {
    kind: isFinal ? 'never' : 'later',
    code,
    response,
    isUnreachable: isConnecting || code === null || code === 421,
  };
}

function plain(text: string): string {
  return text
    .replace(/[\p{Cc}\ufffd]+/gu, ' ')
    .trim()
    .slice(0, RESPONSE_CHARACTERS);
}

/** Whether a refusal says that the address does not exist, or takes no mail any more (RFC 3463 §3.2, §3.3). */
export function isHardBounce(code: number | null, response: string): boolean {
  const enhanced = /\b5\.(\d{1,3})\.(\d{1,3})\b/.exec(response);
  if (enhanced) {
    const [subject, detail] = [Number(enhanced[1]), Number(enhanced[2])];
    return (subject === 1 && [1, 2, 3, 6, 10].includes(detail)) || (subject === 2 && detail === 1);
  }
  return code !== null && [550, 551, 553].includes(code);
}
