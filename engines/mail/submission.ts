// Mail submission by customers (RFC 6409): AUTH after TLS only, envelope and From restricted to their own domains, and
// 250 only once the message is durable and its row is committed.
import type { AddressInfo, Socket } from 'node:net';
import { createSecureContext } from 'node:tls';
import {
  SMTPServer,
  type SMTPServerAddress,
  type SMTPServerAuthentication,
  type SMTPServerDataStream,
  type SMTPServerOptions,
  type SMTPServerSession,
} from 'smtp-server';
import type { MailPort } from '../../core/setting_types';
import { localPartText } from '../../core/protocols/mailbox';
import { receiveMessage, type IncomingParts, type StoredMessage } from './message/message_file';
import { domainOf, requireOwn, requireOwnOriginators } from './originators';
import { announcesUtf8, requireHonouredPath } from './message/paths';
import { SmtpReply, TRY_LATER } from './reply';
import { guardSessions } from './session_gate';
import { makeStrict } from './strict_session';
import { fieldsNamed, valueOf, type HeaderField } from './message/header';

/** An authenticated sender, as of the last check. */
export interface MailSender {
  zone_id: string;
  project_id: string;
  /** Ids of verified domains by name. */
  domains: ReadonlyMap<string, string>;
}

export interface Submission {
  sender: MailSender;
  /** Envelope sender. */
  from: string;
  header_from: string;
  domain_id: string;
  recipients: readonly string[];
  message: StoredMessage;
}

export interface SubmissionRules {
  /** @throws SmtpReply for a wrong password, a zone that may not send, or a source address that is not allowed */
  login(username: string, password: string, address: string): Promise<MailSender>;
  /** Reloads the sender. @throws SmtpReply where it may no longer send */
  renew(sender: MailSender, address: string): Promise<MailSender>;
  /** Id of an incoming message. */
  newId(): string;
  incoming(id: string): Pick<IncomingParts, 'file' | 'directory' | 'keep'>;
  /** Resolves when the rows are committed. @throws SmtpReply, for example beyond the daily limit */
  accept(id: string, submission: Submission): Promise<void>;
}

interface SubmissionOptions {
  ports: readonly MailPort[];
  addresses: readonly string[];
  host: string;
  bytesMax: number;
  recipientsMax: number;
  tls: { key: string; cert: string };
  rules: SubmissionRules;
  log(message: string, error: unknown): void;
}

export interface MailListener {
  ports: number[];
  /** @throws Error where key and certificate do not match: the previous certificate stays in use */
  setCertificate(tls: { key: string; cert: string }): void;
  close(): Promise<void>;
}

/** Most messages of programs are smaller. */
const INLINE_BYTES_MAX = 32 * 1024;
/** Joke commands of the library, and commands for proxies only. */
export const UNUSED_COMMANDS = ['WIZ', 'SHELL', 'KILL', 'XCLIENT', 'XFORWARD'];
const SESSIONS_MAX = 2000;
const SESSIONS_OF_ADDRESS_MAX = 200;
const IDLE_MS = 5 * 60_000;
const CLOSE_MS = 3_000;

/** Listens on all ports that can be bound. `failed`: the other ports, with the error. */
export async function openSubmission(
  options: SubmissionOptions,
): Promise<MailListener & { failed: { port: number; error: Error }[] }> {
  const servers: SMTPServer[] = [];
  const ports: number[] = [];
  const failed: { port: number; error: Error }[] = [];
  for (const { port, tls } of options.ports) {
    for (const address of options.addresses) {
      const server = newServer(options, tls);
      try {
        ports.push(await listen(server, port, address));
        servers.push(server);
      } catch (error) {
        failed.push({ port, error: error as Error });
      }
    }
  }
  return {
    ...{ ports, failed },
    setCertificate: (tls) => setCertificate(servers, tls),
    close: async () => void (await Promise.all(servers.map(closeServer))),
  };
}

/** Validates first: the server would drop its current certificate before it rejects a mismatched key. */
export function setCertificate(servers: readonly SMTPServer[], tls: { key: string; cert: string }): void {
  createSecureContext(tls);
  for (const server of servers) server.updateSecureContext(tls);
}

function newServer(options: SubmissionOptions, tls: boolean): SMTPServer {
  const { host, bytesMax } = options;
  const server = new SMTPServer({
    ...handlers(options),
    ...{ name: host, banner: 'platform-api', size: bytesMax, rejectOversized: true, secure: tls, ...options.tls },
    ...{ minVersion: 'TLSv1.2', authMethods: ['PLAIN', 'LOGIN'], allowInsecureAuth: false, authOptional: false },
    ...{ disableReverseLookup: true, logger: false, maxClients: SESSIONS_MAX, socketTimeout: IDLE_MS },
    ...{ closeTimeout: CLOSE_MS, authRequiredMessage: '5.7.0 Authentication is required.' },
    disabledCommands: [...UNUSED_COMMANDS],
  });
  makeStrict(server);
  guardSessions(server, SESSIONS_OF_ADDRESS_MAX);
  // With Nagle's algorithm, each small reply to pipelined commands would wait for the previous ACK.
  server.server.on('connection', (socket: Socket) => socket.setNoDelay(true));
  // Aborted sessions and failed TLS handshakes are network errors.
  server.on('error', () => {});
  return server;
}

function handlers(options: SubmissionOptions): SMTPServerOptions {
  const { log } = options;
  return {
    onAuth: (credentials, session, callback) =>
      answer(
        log,
        callback,
        async () => ({ user: await login(options, credentials, session.remoteAddress) }),
        (result) => callback(null, result),
      ),
    onMailFrom: (address, session, callback) =>
      answer(
        log,
        callback,
        () => mailFrom(options, session, address),
        () => callback(),
      ),
    onRcptTo: (address, session, callback) =>
      answer(
        log,
        callback,
        async () => rcptTo(options, session, address),
        () => callback(),
      ),
    onData: (stream, session, callback) =>
      answer(
        log,
        callback,
        () => data(options, session, stream),
        (id) => callback(null, `2.0.0 Queued as ${id}`),
      ),
  };
}

/** Calls back with the reply to the client. */
export function answer<Result>(
  log: SubmissionOptions['log'],
  callback: (error: Error) => void,
  run: () => Promise<Result>,
  done: (result: Result) => void,
): void {
  run().then(done, (error: unknown) => {
    if (error instanceof SmtpReply) return callback(error);
    log('a mail session failed', error);
    callback(TRY_LATER());
  });
}

/** authzid must be empty or the same user (RFC 4616 §2): a password authenticates its own zone only. */
async function login(
  { rules }: SubmissionOptions,
  { username = '', password, authzid }: SMTPServerAuthentication,
  address: string,
): Promise<MailSender> {
  if (authzid && authzid !== username)
    throw new SmtpReply(535, '5.7.8', 'The authorization identity has to be empty, or the user name.');
  return rules.login(username, password ?? '', address);
}

async function mailFrom({ rules }: SubmissionOptions, session: SMTPServerSession, path: SMTPServerAddress) {
  requireHonouredPath(path, announcesUtf8(path));
  const sender = await rules.renew(session.user as MailSender, session.remoteAddress);
  session.user = sender;
  // Automatic answers have no sender in the envelope (RFC 3834, RFC 8098); their From is checked like any other.
  if (path.address) requireOwn(sender.domains, path.address, 'envelope');
}

function rcptTo({ recipientsMax }: SubmissionOptions, { envelope }: SMTPServerSession, path: SMTPServerAddress) {
  requireHonouredPath(path, announcesUtf8(envelope.mailFrom));
  if (envelope.rcptTo.length >= recipientsMax)
    throw new SmtpReply(452, '4.5.3', `A message may have ${recipientsMax} recipients.`);
  if (!isPostmaster(path.address) && !isDeliverable(path.address))
    throw new SmtpReply(553, '5.1.3', 'The recipient address cannot be delivered to.');
}

async function data(
  options: SubmissionOptions,
  session: SMTPServerSession,
  stream: SMTPServerDataStream,
): Promise<string> {
  // The session clears its envelope when the reply is sent.
  const { user, envelope, remoteAddress } = session;
  const sender = user as MailSender;
  const { address } = envelope.mailFrom as SMTPServerAddress;
  const { rules, host, bytesMax } = options;
  const addresses = envelope.rcptTo.map(({ address }) => (isPostmaster(address) ? `${address}@${host}` : address));
  const recipients = [...new Set(addresses)];
  const id = rules.newId();
  let header_from = '';
  const message = await receiveMessage(stream, {
    ...{ id, host, bytesMax, inlineBytesMax: INLINE_BYTES_MAX, ...rules.incoming(id) },
    takesUtf8: announcesUtf8(envelope.mailFrom),
    received: receivedLine(session, host, id, remoteAddress),
    checkHeader: (fields) => void (header_from = requireOwnOriginators(sender.domains, fields)),
  });
  const domain_id = sender.domains.get(domainOf(header_from)) as string;
  // Bounces of everything else come back to the platform.
  const from = address || (isAutomaticAnswer(message.fields) ? '' : header_from);
  await rules.accept(id, { sender, from, header_from, domain_id, recipients, message });
  return id;
}

const HOST_NAME = /^([a-z0-9]([\w-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]$/;
const LOCAL_BYTES_MAX = 64;

/** A mailbox at a host name. Percent hacks and similar routes, also in quotes, are used to probe for open relays. */
function isDeliverable(address: string): boolean {
  const local = address.slice(0, address.lastIndexOf('@'));
  if (Buffer.byteLength(local) > LOCAL_BYTES_MAX || /[@%!<>]/.test(localPartText(local))) return false;
  return HOST_NAME.test(domainOf(address));
}

/** RFC 5321 §4.1.1.3: without a domain, it belongs to this host. */
function isPostmaster(address: string): boolean {
  return address.toLowerCase() === 'postmaster';
}

function receivedLine(
  { hostNameAppearsAs, transmissionType }: SMTPServerSession,
  host: string,
  id: string,
  address: string,
): string {
  const name =
    String(hostNameAppearsAs)
      .replace(/[^\w.:[\]-]/g, '')
      .slice(0, 100) || 'unknown';
  const date = new Date().toUTCString().replace('GMT', '+0000');
  return `Received: from ${name} ([${address}])\r\n by ${host} with ${transmissionType} id ${id};\r\n ${date}`;
}

async function listen(server: SMTPServer, port: number, address: string): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.server.once('error', reject);
    server.listen(port, address, () => {
      server.server.off('error', reject);
      resolve();
    });
  });
  return (server.server.address() as AddressInfo).port;
}

function closeServer(server: SMTPServer): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}

export { listen as listenSmtp, closeServer as closeSmtp };

const REPORT = /report-type\s*=\s*"?(?:disposition-notification|delivery-status)\b/i;

/** Automatic replies (RFC 3834), receipts (RFC 8098) and reports of a failed delivery (RFC 3464). */
function isAutomaticAnswer(fields: readonly HeaderField[]): boolean {
  const value = (name: string): string => fieldsNamed(fields, name).map(valueOf).join(' ');
  if (/^auto-replied\b/i.test(value('auto-submitted'))) return true;
  const type = value('content-type');
  return /^multipart\/report\b/i.test(type) && REPORT.test(type);
}
