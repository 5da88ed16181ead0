// Bounce server: accepts bounces and complaints for addresses issued by the platform, and nothing else.
import { SMTPServer, type SMTPServerAddress, type SMTPServerEnvelope, type SMTPServerSession } from 'smtp-server';
import { announcesUtf8, requireHonouredPath } from './message/paths';
import { readReport, type MailReport } from './report';
import { SmtpReply } from './reply';
import { guardSessions } from './session_gate';
import { makeStrict } from './strict_session';
import { answer, closeSmtp, listenSmtp, setCertificate, UNUSED_COMMANDS, type MailListener } from './submission';

export interface BounceRules {
  /** Whether the address was issued by the platform. */
  isOurs(address: string): Promise<boolean>;
  /** Processes a report. @param recipients addresses that it was sent to */
  report(recipients: readonly string[], report: MailReport): Promise<void>;
}

interface BounceServerOptions {
  port: number;
  addresses: readonly string[];
  host: string;
  tls: { key: string; cert: string };
  rules: BounceRules;
  log(message: string, error: unknown): void;
}

/** Reports quote the message, often completely. */
const REPORT_BYTES_MAX = 10 * 1024 * 1024;
const RECIPIENTS_MAX = 10;
const SESSIONS_MAX = 200;
const SESSIONS_OF_ADDRESS_MAX = 20;
const IDLE_MS = 60_000;

/** @throws Error where the port cannot be bound */
export async function openBounceServer(options: BounceServerOptions): Promise<MailListener> {
  const servers: SMTPServer[] = [];
  const ports: number[] = [];
  const close = async (): Promise<void> => void (await Promise.all(servers.map(closeSmtp)));
  try {
    for (const address of options.addresses) {
      const server = newServer(options);
      ports.push(await listenSmtp(server, options.port, address));
      servers.push(server);
    }
  } catch (error) {
    await close();
    throw error;
  }
  return { ports, setCertificate: (tls) => setCertificate(servers, tls), close };
}

async function rcptTo(
  rules: BounceRules,
  { mailFrom, rcptTo: taken }: SMTPServerEnvelope,
  path: SMTPServerAddress,
): Promise<void> {
  requireHonouredPath(path, announcesUtf8(mailFrom));
  if (taken.length >= RECIPIENTS_MAX) throw new SmtpReply(452, '4.5.3', 'Too many recipients.');
  if (!(await rules.isOurs(path.address))) throw new SmtpReply(550, '5.7.1', 'This server relays no mail.');
}

function newServer({ host, tls, rules, log }: BounceServerOptions): SMTPServer {
  const server = new SMTPServer({
    ...{ name: host, banner: 'platform-api', size: REPORT_BYTES_MAX, rejectOversized: true, ...tls },
    ...{
      minVersion: 'TLSv1.2',
      disabledCommands: ['AUTH', ...UNUSED_COMMANDS],
      authOptional: true,
      closeTimeout: 1_000,
    },
    ...{ disableReverseLookup: true, logger: false, maxClients: SESSIONS_MAX, socketTimeout: IDLE_MS },
    onMailFrom: (path, _session, callback) =>
      answer(
        log,
        callback,
        async () => requireHonouredPath(path, announcesUtf8(path)),
        () => callback(),
      ),
    onRcptTo: (path, { envelope }, callback) =>
      answer(
        log,
        callback,
        () => rcptTo(rules, envelope, path),
        () => callback(),
      ),
    onData: (stream, session: SMTPServerSession, callback) => {
      const recipients = session.envelope.rcptTo.map(({ address }: SMTPServerAddress) => address);
      answer(
        log,
        callback,
        async () => rules.report(recipients, await readReport(stream)),
        () => callback(null, '2.0.0 Thank you.'),
      );
    },
  });
  makeStrict(server);
  guardSessions(server, SESSIONS_OF_ADDRESS_MAX);
  server.on('error', () => {});
  return server;
}
