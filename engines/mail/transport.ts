// Delivery to other mail servers: connection reuse, and interpretation of replies.
import SMTPConnection from 'nodemailer/lib/smtp-connection';
import type { Readable } from 'node:stream';
import { domainToASCII } from 'node:url';
import { isGreylisting, type Rejection } from './rejection';

/** A server to deliver to, with its address. */
export interface Hop {
  /** Host name or address to connect to. */
  host: string;
  port: number;
  /** TLS from the start. */
  secure: boolean;
  /** Expected name in the certificate. */
  servername: string;
  /** `required`: TLS with a valid certificate (MTA-STS, smarthosts); `opportunistic`: TLS where it is offered. */
  tls: 'required' | 'opportunistic';
  auth: { user: string; pass: string } | null;
  /** Additional trusted roots, PEM. */
  ca: string | null;
}

export interface Outbound {
  from: string;
  to: string;
  size: number;
  /** The header has non-ASCII characters (RFC 6532). */
  needsUtf8: boolean;
  /** Whether the body has non-ASCII bytes. @throws Error where the file is missing */
  isEightBit(): Promise<boolean>;
  content(): Readable;
}

/** `later`: worth a retry; `never`: rejected permanently. */
export interface HopResult {
  kind: 'delivered' | 'later' | 'never';
  code: number | null;
  response: string;
  /** What a rejection has answered. */
  stage: Rejection['stage'];
  /** The server itself could not be used: try the next one, and delay deliveries to the destination. */
  isUnreachable: boolean;
}

export interface Transport {
  send(hop: Hop, message: Outbound): Promise<HopResult>;
  close(): void;
}

/** RFC 5321 §4.5.3.2.6 allows ten minutes after the end of a message; a server slower than two is abandoned. */
const TIMES = { connectMs: 30_000, silenceMs: 120_000, attemptMs: 5 * 60_000 };
const IDLE_MS = 5_000;
const MESSAGES_PER_CONNECTION = 100;
/** A server whose offered TLS fails is used without TLS for this time, unless TLS is required. */
const WITHOUT_TLS_MS = 60 * 60_000;
const BROKEN_TLS_MAX = 10_000;
const RESPONSE_CHARACTERS = 500;

interface Open {
  connection: SMTPConnection;
  used: number;
  idle: NodeJS.Timeout | null;
  isBroken: boolean;
  /** The server supports SMTPUTF8 (RFC 6531). */
  takesUtf8: boolean;
  /** The server supports 8BITMIME (RFC 6152). */
  takesEightBit: boolean;
  /** The current message needs SMTPUTF8, regardless of its addresses. */
  announcesUtf8: boolean;
}

/** Connections of this process, by server. */
class Connections {
  private readonly idle = new Map<string, Open[]>();
  private readonly all = new Set<Open>();

  private readonly withoutTls = new Map<string, number>();

  constructor(
    private readonly name: string,
    private readonly times: typeof TIMES,
  ) {}

  /** @throws SmtpError */
  async acquire(key: string, hop: Hop): Promise<Open> {
    const isPlain = (this.withoutTls.get(key) ?? 0) > Date.now();
    try {
      return await this.open(key, hop, isPlain);
    } catch (error) {
      if (isPlain || hop.secure || hop.tls === 'required' || !isTlsFailure(error as SmtpError)) throw error;
      const open = await this.open(key, hop, true);
      if (this.withoutTls.size > BROKEN_TLS_MAX) this.withoutTls.clear();
      this.withoutTls.set(key, Date.now() + WITHOUT_TLS_MS);
      return open;
    }
  }

  private async open(key: string, hop: Hop, isPlain: boolean): Promise<Open> {
    for (let known = this.idle.get(key)?.pop(); known; known = this.idle.get(key)?.pop()) {
      if (known.idle) clearTimeout(known.idle);
      if (!known.isBroken) return known;
    }
    const open: Open = {
      ...{ connection: newConnection(this.name, hop, isPlain, this.times), used: 0, idle: null, isBroken: false },
      ...{ takesUtf8: false, takesEightBit: false, announcesUtf8: false },
    };
    announceUtf8(open);
    this.all.add(open);
    open.connection.on('error', () => this.drop(open));
    open.connection.once('end', () => this.drop(open));
    await connect(open, hop).catch((error: unknown) => {
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

/** @param name of this host, for EHLO */
export function openTransport(name: string, times = TIMES): Transport {
  const connections = new Connections(name, times);
  return {
    async send(hop, message) {
      const key = `${hop.host} ${hop.port} ${hop.servername} ${hop.tls} ${hop.auth?.user ?? ''}`;
      let open: Open;
      try {
        open = await connections.acquire(key, hop);
      } catch (error) {
        return failureOf(error as SmtpError, true);
      }
      const result = await deliver(open, message, times.attemptMs);
      // A session that broke within a transaction is not reused.
      if (result.code === null) connections.drop(open);
      // An accepted message ends its transaction (RFC 5321 §4.1.1.4).
      else if (result.kind === 'delivered') connections.release(key, open);
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

function newConnection(
  name: string,
  { host, port, secure, servername, tls, ca }: Hop,
  isPlain: boolean,
  { connectMs, silenceMs }: typeof TIMES,
): SMTPConnection {
  const isRequired = tls === 'required';
  return new SMTPConnection({
    ...{ host, port, secure, name, logger: false, dnsTimeout: connectMs, ignoreTLS: isPlain },
    ...{ requireTLS: isRequired && !secure, opportunisticTLS: !isRequired },
    ...{ connectionTimeout: connectMs, greetingTimeout: connectMs, socketTimeout: silenceMs },
    tls: { servername, rejectUnauthorized: isRequired, minVersion: 'TLSv1.2', ...(ca && { ca }) },
  });
}

function isTlsFailure({ code, message }: SmtpError): boolean {
  return code === 'ETLS' || /^(EPROTO|ERR_SSL|ERR_TLS)/.test(code ?? '') || /\b(SSL|TLS)\b/.test(message);
}

function connect(open: Open, { auth }: Hop): Promise<void> {
  const { connection } = open;
  return new Promise((resolve, reject) => {
    connection.once('error', reject);
    connection.connect((error) => {
      if (error) return reject(error);
      // The EHLO response; after a login it is overwritten.
      open.takesUtf8 = /^250[ -]SMTPUTF8\b/im.test(connection.lastServerResponse || '');
      open.takesEightBit = /^250[ -]8BITMIME\b/im.test(connection.lastServerResponse || '');
      if (!auth) return resolve();
      connection.login(auth, (failure) => (failure ? reject(failure) : resolve()));
    });
  });
}

/** The library announces SMTPUTF8 for envelope addresses only, not for the header (RFC 6531 §3.4). */
function announceUtf8(open: Open): void {
  const connection = open.connection as unknown as { _sendCommand(text: string, logged?: unknown): void };
  const send = connection._sendCommand.bind(connection);
  connection._sendCommand = (text, logged) => {
    const isMissing = open.announcesUtf8 && text.startsWith('MAIL FROM:') && !/ SMTPUTF8\b/.test(text);
    send(isMissing ? `${text} SMTPUTF8` : text, logged);
  };
}

/** The domain in its ASCII form, which every server accepts. */
function asciiDomain(address: string): string {
  const at = address.lastIndexOf('@') + 1;
  return address.slice(0, at) + (domainToASCII(address.slice(at)) || address.slice(at));
}

const WITHOUT_UTF8: HopResult = {
  ...{ kind: 'never', code: 550, stage: 'other', isUnreachable: false },
  response: '550 5.6.7 The mail server takes no addresses beyond ASCII (SMTPUTF8, RFC 6531).',
};

const WITHOUT_EIGHT_BIT: HopResult = {
  ...{ kind: 'never', code: 550, stage: 'other', isUnreachable: false },
  response: '550 5.6.3 The mail server takes no bytes beyond ASCII (8BITMIME), and what is signed is not converted.',
};

async function deliver(open: Open, message: Outbound, attemptMs: number): Promise<HopResult> {
  const { size, content, needsUtf8 } = message;
  const [from, to] = [asciiDomain(message.from), asciiDomain(message.to)];
  if (!open.takesUtf8 && (needsUtf8 || /[^\0-\x7f]/.test(from + to))) return WITHOUT_UTF8;
  const isEightBit = await message.isEightBit();
  if (isEightBit && !open.takesEightBit) return WITHOUT_EIGHT_BIT;
  open.announcesUtf8 = needsUtf8;
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
    }, attemptMs);
    connection.once('error', broke);
    stream.once('error', (error) => {
      connection.close();
      broke(error);
    });
    open.used += 1;
    connection.send({ from, to, size, use8BitMime: isEightBit || needsUtf8 }, stream, (error, info) =>
      end(error ? failureOf(error as SmtpError, false) : successOf(info as { response?: string })),
    );
  });
}

function reset({ connection, isBroken }: Open): Promise<void> {
  if (isBroken) return Promise.reject(new Error('the connection has ended'));
  return new Promise((resolve, reject) => connection.reset((error) => (error ? reject(error) : resolve())));
}

function successOf({ response = '' }: { response?: string }): HopResult {
  return { kind: 'delivered', code: 250, response: plain(response), stage: 'other', isUnreachable: false };
}

function failureOf(error: SmtpError, isConnecting: boolean): HopResult {
  const code = error.responseCode ?? null;
  const response = plain(error.response ?? `${error.message} (${error.code ?? 'no code'})`);
  // Rejected smarthost credentials are the operator's problem, not the sender's.
  const isFinal = code !== null && code >= 500 && !isConnecting && error.code !== 'EAUTH' && !isGreylisting(response);
  return {
    ...{ kind: isFinal ? 'never' : 'later', code, response },
    stage: error.command === 'RCPT TO' ? 'rcpt' : 'other',
    isUnreachable: isConnecting || code === null || code === 421,
  };
}

function plain(text: string): string {
  return text
    .replace(/[\p{Cc}\ufffd]+/gu, ' ')
    .trim()
    .slice(0, RESPONSE_CHARACTERS);
}
