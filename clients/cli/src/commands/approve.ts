// approve: ls, show, call, refuse, keys, resume.
import { buildRouteMap } from '@stricli/core';
import { choice, sessionCommand, tuple, word, type Shell } from '../command';
import { usageFailure } from '../failure';
import { notice } from '../output/notice';
import { formatAge, printOne, printRows, type Row } from '../output/print';
import { ask, canAsk, confirm } from '../output/terminal';
import type { Session } from '../session';

const APPROVAL = tuple(word('approval', 'Id of the approval'));
const STATUSES = ['pending', 'approved', 'refused', 'used', 'expired'] as const;
const SHOWN = {
  approval: 'id',
  status: 'status',
  call: 'summary',
  resource: 'resource.name',
  with: (row: Row) => pairsOf(row.input, 'name', 'value', ' = '),
  changes: (row: Row) => pairsOf(row.affects, 'type', 'count', ': '),
  'asked by': 'requested_by.name',
  key: 'key_id',
  'decided by': 'decided_by.name',
  until: 'expires_at',
  page: 'url',
};

const ls = sessionCommand<{ readonly status?: (typeof STATUSES)[number] | undefined }>({
  brief: 'List calls that wait for an approval',
  target: 'project',
  flags: { status: choice('Show those with this status (default: pending)', STATUSES) },
  async run(session, flags) {
    const columns = {
      CALL: 'summary',
      RESOURCE: 'resource.name',
      'ASKED BY': 'requested_by.name',
      ASKED: (row: Row) => formatAge(row.created_at),
      STATUS: 'status',
      ID: 'id',
    };
    printRows(await session.list('/v2/approvals', { status: flags.status ?? 'pending' }), columns, flags);
  },
});

const show = sessionCommand<NonNullable<unknown>, [string]>({
  brief: 'Show a call, who asks, and what the call would do',
  target: 'project',
  args: APPROVAL,
  run: async (session, flags, id) => printOne(await session.request('GET', pathOf(id)), flags, SHOWN),
});

const call = sessionCommand<NonNullable<unknown>, [string]>({
  brief: 'Approve a call; the caller repeats it within an hour',
  text: 'It asks for a code of your authenticator app. Without two-factor, calls are approved in the dashboard alone.',
  target: 'project',
  asks: true,
  args: APPROVAL,
  async run(session, flags, id) {
    if (!canAsk()) throw usageFailure('A call is approved by a person at a terminal, or in the dashboard.');
    printOne(await session.request('GET', pathOf(id)), {}, SHOWN);
    await confirm('Approve this call?', flags);
    const code = await ask('Code of your authenticator app: ');
    const row = await session.request('POST', `${pathOf(id)}/approve`, { body: { code: code.trim() } });
    notice('Approved. The caller repeats exactly this call within an hour.');
    printOne(row, flags, { approval: 'id', status: 'status', until: 'expires_at' });
  },
});

const refuse = sessionCommand<NonNullable<unknown>, [string]>({
  brief: 'Refuse a call',
  target: 'project',
  args: APPROVAL,
  async run(session, flags, id) {
    const row = await session.request('POST', `${pathOf(id)}/refuse`);
    printOne(row, flags, { approval: 'id', status: 'status', until: 'expires_at' });
  },
});

const keys = sessionCommand({
  brief: 'List your paused keys and those of your projects',
  target: 'server',
  async run(session, flags) {
    const columns = {
      NAME: 'name',
      PREFIX: 'prefix',
      PROJECT: 'project_id',
      PAUSED: (row: Row) => formatAge(row.paused_at),
      ID: 'id',
    };
    printRows(await session.list('/v2/paused_keys', {}, { project: 'none' }), columns, flags);
  },
});

const resume = sessionCommand<NonNullable<unknown>, [string]>({
  brief: 'Let a paused key go on; it is not paused again within an hour',
  target: 'server',
  args: tuple(word('key', 'Id of the key')),
  async run(session, flags, id) {
    const row = await resumeKey(session, id);
    printOne(row, flags, { key: 'id', name: 'name' });
  },
});

const resumeKey = (session: Session, id: string): Promise<Row> =>
  session.request('POST', `/v2/paused_keys/${encodeURIComponent(id)}/resume`, { project: 'none' });

const pathOf = (id: string): string => `/v2/approvals/${encodeURIComponent(id)}`;

function pairsOf(rows: unknown, name: string, value: string, between: string): string {
  return (rows as Row[]).map((row) => `${String(row[name])}${between}${String(row[value])}`).join('; ');
}

export const approve = buildRouteMap<string, Shell>({
  routes: { ls, show, call, refuse, keys, resume },
  aliases: { list: 'ls' },
  docs: { brief: 'Calls that wait for a second person, and keys that are paused' },
});
