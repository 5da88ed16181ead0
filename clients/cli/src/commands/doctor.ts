// doctor: what a login and a deployment need, checked one by one.
import * as fs from 'node:fs';
import { command } from '../command';
import { configDirectory } from '../config/files';
import { credentialsFile, readCredentials } from '../config/credentials';
import { findLink } from '../config/link';
import { Failure } from '../failure';
import { proxyFor } from '../http/proxy';
import { sendWithRetries } from '../http/retry';
import { printRows, writeLine, type Row } from '../output/print';
import { colour, isTerminal } from '../output/terminal';
import { openSession, type Session, type TargetFlags } from '../session';

interface Finding {
  check: string;
  result: 'ok' | 'failed' | 'note';
  detail: string;
}

const CLOCK_SECONDS_MAX = 60;

export const doctor = command({
  brief: 'Check the connection, the login and this computer',
  text: 'Shows no secret: the output can be passed on.',
  async run(flags) {
    const findings: Finding[] = [];
    const add = async (check: string, work: () => Promise<string | [Finding['result'], string]>): Promise<boolean> => {
      try {
        const found = await work();
        const [result, detail] = typeof found === 'string' ? (['ok', found] as const) : found;
        findings.push({ check, result, detail });
        return result !== 'failed';
      } catch (error) {
        const { message } = error as Error;
        findings.push({
          check,
          result: 'failed',
          detail: error instanceof Failure ? [message, ...error.hints].join(' ') : message,
        });
        return false;
      }
    };
    await add('svc', async () => `${SVC_VERSION}, Node ${process.versions.node}, ${process.platform} ${process.arch}`);
    await add('files', async () => checkFiles());
    await add('link', async () => checkLink());
    await checkServer(flags, add);
    if (flags.json || flags.field !== undefined || !isTerminal())
      printRows(findings as unknown as Row[], { CHECK: 'check', RESULT: 'result', DETAIL: 'detail' }, flags);
    else for (const { check, result, detail } of findings) writeLine(`${mark(result)} ${check.padEnd(8)} ${detail}`);
    if (findings.some(({ result }) => result === 'failed')) throw new Failure('Something is wrong: see above.');
  },
});

type Add = (check: string, work: () => Promise<string | [Finding['result'], string]>) => Promise<boolean>;

async function checkServer(flags: TargetFlags, add: Add): Promise<void> {
  let session: Session | undefined;
  const hasServer = await add('server', async () => {
    session = openSession(flags);
    return session.server;
  });
  if (!hasServer || !session) return;
  const { server } = session;
  const url = new URL('/v2/errors?limit=1', server);
  await add('proxy', async () => {
    const proxy = proxyFor(url);
    return proxy ? `${proxy.protocol}//${proxy.host}` : 'none for this server';
  });
  let date: string | undefined;
  const answers = await add('network', async () => {
    const began = Date.now();
    const { status, headers, text } = await sendWithRetries({ method: 'GET', url });
    date = headers.date;
    if (status !== 200 || !text.includes('"next_cursor"'))
      return ['failed', `${server} answered ${status}, not as the platform does.`];
    return `answers in ${Date.now() - began} ms`;
  });
  if (!answers) return;
  await add('clock', async () => {
    const seconds = Math.round(Math.abs(Date.now() - Date.parse(date ?? '')) / 1000);
    if (Number.isNaN(seconds)) return ['note', 'The server does not say its time.'];
    if (seconds <= CLOCK_SECONDS_MAX) return 'agrees with that of the server';
    return ['failed', `differs by ${seconds} s from that of the server: logins expire too soon or too late.`];
  });
  await add('login', async () => {
    const me = await (session as Session).request<{ token: Row; user: Row | null }>('GET', '/v2/me', {
      project: 'none',
    });
    const scopes = (me.token.scopes as string[] | null)?.join(' ') ?? 'all of its project';
    return `${me.user?.email ?? me.token.name}, ${me.token.kind}, ${scopes}`;
  });
}

function checkFiles(): string | [Finding['result'], string] {
  if (!fs.existsSync(credentialsFile())) return ['note', `No login is kept in ${configDirectory()}.`];
  const { servers } = readCredentials();
  return `${credentialsFile()}: ${Object.keys(servers).length} logins, private`;
}

function checkLink(): string | [Finding['result'], string] {
  const found = findLink();
  return found ? `${found.application_id} at ${found.url} (${found.folder})` : ['note', 'This folder is not linked.'];
}

function mark(result: Finding['result']): string {
  if (result === 'ok') return colour('ok    ', 'green');
  return result === 'failed' ? colour('failed', 'red') : colour('note  ', 'yellow');
}
