// domains: ls, add, verify, rm.
import { buildRouteMap } from '@stricli/core';
import { sessionCommand, tuple, word, type Shell } from '../command';
import { EXIT, Failure } from '../failure';
import { notice } from '../output/notice';
import { formatAge, printOne, printRows, writeLine, type Row } from '../output/print';
import { confirmByName } from '../output/terminal';
import { namesOf, type Session } from '../session';

const HOSTNAME = tuple(word('hostname', 'Host name'));

const ls = sessionCommand({
  brief: 'List domains',
  async run(session, flags) {
    const rows = await session.list(await pathOf(session));
    const columns = {
      HOSTNAME: 'hostname',
      STATUS: 'status',
      CERTIFICATE: 'certificate.status',
      CHECKED: (row: Row) => formatAge(row.last_checked_at),
      REASON: 'status_reason',
    };
    printRows(rows, columns, flags);
  },
});

const add = sessionCommand<NonNullable<unknown>, [string]>({
  brief: 'Add a domain, and show the DNS records that it needs',
  args: HOSTNAME,
  async run(session, flags, hostname) {
    printDomain(await session.request('POST', await pathOf(session), { body: { hostname } }), flags);
  },
});

const verify = sessionCommand<NonNullable<unknown>, [string]>({
  brief: 'Check the DNS records of a domain now',
  text: 'Ends with 1 where records are missing.',
  args: HOSTNAME,
  async run(session, flags, hostname) {
    const found = await findDomain(session, hostname);
    const row = await session.request('POST', `${await pathOf(session)}/${found.id}/verify`);
    printDomain(row.status_reason && !flags.json ? { ...row, status_reason: null } : row, flags);
    if (row.status_reason) throw new Failure(String(row.status_reason));
  },
});

const rm = sessionCommand<NonNullable<unknown>, [string]>({
  brief: 'Remove a domain',
  asks: true,
  output: false,
  args: HOSTNAME,
  async run(session, flags, hostname) {
    const found = await findDomain(session, hostname);
    await confirmByName(
      `Visitors of ${hostname} will no longer reach the application. \`svc undo\` takes it back.`,
      hostname,
      flags,
    );
    await session.send('DELETE', `${await pathOf(session)}/${found.id}`);
    notice(`Removed ${hostname}.`);
  },
});

const pathOf = async (session: Session): Promise<string> => `/v2/applications/${await session.application()}/domains`;

async function findDomain(session: Session, hostname: string): Promise<Row> {
  const rows = await session.list(await pathOf(session));
  const found = rows.find((row) => row.hostname === hostname.toLowerCase() || row.id === hostname);
  if (found) return found;
  const names = namesOf(rows.map((row) => ({ id: String(row.id), name: String(row.hostname) })));
  throw new Failure(`The application has no domain ${hostname}.`, EXIT.notFound, [names]);
}

function printDomain(row: Row, flags: { json?: boolean | undefined; field?: string | undefined }): void {
  printOne(row, flags, {
    hostname: 'hostname',
    status: 'status',
    reason: 'status_reason',
    certificate: 'certificate.status',
  });
  const records = (row.dns_instructions ?? []) as Row[];
  if (flags.json || flags.field !== undefined || !records.length) return;
  writeLine('');
  printRows(records, { TYPE: 'type', NAME: 'name', VALUE: 'value', STATUS: 'status' }, flags);
}

export const domains = buildRouteMap<string, Shell>({
  routes: { ls, add, verify, rm },
  aliases: { list: 'ls', remove: 'rm' },
  docs: { brief: 'Custom domains' },
});
