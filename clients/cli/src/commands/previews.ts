// previews: ls, create, redeploy, rm.
import { buildRouteMap } from '@stricli/core';
import { duration, integer, sessionCommand, text, toggle, tuple, word, type Shell } from '../command';
import { EXIT, Failure, usageFailure } from '../failure';
import { notice } from '../output/notice';
import { formatAge, printOne, printRows, type Row } from '../output/print';
import { confirm } from '../output/terminal';
import type { Session } from '../session';
import { waitWhile } from '../settle';

const UNFINISHED = ['queued', 'building', 'deploying'];
const PREVIEW = tuple(word('preview', 'Id, branch or number of the pull request'));
const WAIT = { wait: toggle('Wait until it runs'), timeout: duration('With --wait: no longer than this') };
type WaitFlags = { readonly wait?: boolean | undefined; readonly timeout?: number | undefined };

const ls = sessionCommand({
  brief: 'List previews',
  async run(session, flags) {
    const columns = {
      BRANCH: 'branch',
      STATUS: 'status',
      URL: 'url',
      EXPIRES: 'expires_at',
      CREATED: (row: Row) => formatAge(row.created_at),
      ID: 'id',
    };
    printRows(await session.list(await pathOf(session)), columns, flags);
  },
});

const create = sessionCommand<
  WaitFlags & {
    readonly branch?: string | undefined;
    readonly pullRequest?: number | undefined;
    readonly expires?: number | undefined;
  }
>({
  brief: 'Create a preview of a branch or pull request',
  flags: {
    branch: text('Branch', 'branch'),
    pullRequest: integer('Number of the pull request', 1),
    expires: duration('Delete it after this time'),
    ...WAIT,
  },
  async run(session, flags) {
    const { branch, pullRequest, expires } = flags;
    if ((branch === undefined) === (pullRequest === undefined)) throw usageFailure('Pass --branch or --pull-request.');
    const body = {
      ...(branch && { branch }),
      ...(pullRequest && { pull_request_number: pullRequest }),
      ...(expires && { expires_at: new Date(Date.now() + expires * 1000).toISOString() }),
    };
    await finish(session, await session.request('POST', await pathOf(session), { body }), flags);
  },
});

const redeploy = sessionCommand<WaitFlags, [string]>({
  brief: 'Build a preview again, from the head of its branch',
  flags: WAIT,
  args: PREVIEW,
  async run(session, flags, given) {
    const { id } = await findPreview(session, given);
    await session.request('POST', `${await pathOf(session)}/${id}/redeploy`);
    await finish(session, await session.request('GET', `${await pathOf(session)}/${id}`), flags);
  },
});

const rm = sessionCommand<NonNullable<unknown>, [string]>({
  brief: 'Delete a preview',
  asks: true,
  output: false,
  args: PREVIEW,
  async run(session, flags, given) {
    const { id, branch } = await findPreview(session, given);
    await confirm(`Delete the preview of ${branch}?`, flags);
    await session.send('DELETE', `${await pathOf(session)}/${id}`);
    notice(`Deleted the preview of ${branch}.`);
  },
});

async function finish(
  session: Session,
  preview: Row,
  flags: WaitFlags & { json?: boolean | undefined; field?: string | undefined },
): Promise<void> {
  const row = flags.wait
    ? await waitWhile(session, `${await pathOf(session)}/${preview.id}`, UNFINISHED, flags)
    : preview;
  const hasFailed = flags.wait === true && row.status === 'failed';
  printOne(row, flags, {
    ...{ preview: 'id', branch: 'branch', status: 'status' },
    ...(!hasFailed && { reason: 'status_reason' }),
    url: 'url',
  });
  if (hasFailed) throw new Failure(String(row.status_reason ?? 'The preview failed.'));
}

const pathOf = async (session: Session): Promise<string> => `/v2/applications/${await session.application()}/previews`;

async function findPreview(session: Session, given: string): Promise<Row> {
  const rows = await session.list(await pathOf(session));
  const found = rows.find((row) => [row.id, row.branch, String(row.pull_request_number)].includes(given));
  if (found) return found;
  throw new Failure(`There is no preview ${given}.`, EXIT.notFound, ['List them: svc previews ls']);
}

export const previews = buildRouteMap<string, Shell>({
  routes: { ls, create, redeploy, rm },
  aliases: { list: 'ls', remove: 'rm' },
  docs: { brief: 'Previews of branches and pull requests' },
});
