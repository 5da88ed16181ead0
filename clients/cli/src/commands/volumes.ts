// volumes: ls, create, grow, rm, and the commands of volume_backups.ts. `svc attach` gives one to an application.
import { buildRouteMap } from '@stricli/core';
import { duration, integer, sessionCommand, text, toggle, tuple, word, type Shell } from '../command';
import { deleteToBin } from '../deletion';
import { EXIT, Failure, usageFailure } from '../failure';
import { printOne, printRows, type Row } from '../output/print';
import { namesOf, type Session } from '../session';
import { waitWhile } from '../settle';
import { volumeBackupCommands } from './volume_backups';

type Named = Row & { id: string; name: string };
type WaitFlags = { readonly wait?: boolean | undefined; readonly timeout?: number | undefined };
const WAIT = { wait: toggle('Wait until it is done'), timeout: duration('With --wait: no longer than this') };
const WORKING = ['provisioning', 'resizing', 'updating'];
const NAME = tuple(word('volume', 'Name or id of the volume'));
const SHOWN = {
  name: 'name',
  size: (row: Row) => `${row.size_gb} GB`,
  status: 'status',
  reason: 'status_reason',
  id: 'id',
};

const ls = sessionCommand({
  brief: 'List volumes',
  target: 'project',
  async run(session, flags) {
    const [volumes, applications] = await Promise.all([
      session.list('/v2/volumes'),
      session.list<Named>('/v2/applications'),
    ]);
    const columns = {
      NAME: 'name',
      SIZE: (row: Row) => `${row.size_gb} GB`,
      STATUS: 'status',
      APP: (row: Row) => applications.find(({ id }) => id === row.application_id)?.name ?? row.application_id,
      MOUNT: 'mount_path',
      ID: 'id',
    };
    printRows(volumes, columns, flags);
  },
});

const create = sessionCommand<
  WaitFlags & { readonly size?: number | undefined; readonly region?: string | undefined },
  [string]
>({
  brief: 'Create a volume',
  text: 'Give it to an application with `svc attach NAME --mount /data`.',
  target: 'project',
  flags: { size: integer('Size in GB (default: 1)', 1), region: text('Region', 'region'), ...WAIT },
  args: tuple(word('name', 'Name of the volume')),
  async run(session, flags, name) {
    const body = { name, size_gb: flags.size ?? 1, ...(flags.region && { region: flags.region }) };
    const made = await session.request('POST', '/v2/volumes', { body });
    await settle(session, made, flags);
  },
});

const grow = sessionCommand<WaitFlags & { readonly size?: number | undefined }, [string]>({
  brief: 'Enlarge a volume; it cannot be made smaller',
  target: 'project',
  flags: { size: integer('New size in GB', 1), ...WAIT },
  args: NAME,
  async run(session, flags, given) {
    if (flags.size === undefined) throw usageFailure('Pass the new size in GB: --size 10.');
    const { id } = await findVolume(session, given);
    await settle(
      session,
      await session.request('PATCH', `/v2/volumes/${id}`, { body: { size_gb: flags.size } }),
      flags,
    );
  },
});

const rm = sessionCommand<NonNullable<unknown>, [string]>({
  brief: 'Delete a volume, which goes to the bin of its project',
  target: 'project',
  asks: true,
  output: false,
  args: NAME,
  async run(session, flags, given) {
    const { id, name } = await findVolume(session, given);
    const texts = { what: `The volume ${name} will be deleted.`, done: `Deleted the volume ${name}.` };
    await deleteToBin({ session, flags, name, ...texts, restore: `svc bin restore ${name}` }, () =>
      session.send('DELETE', `/v2/volumes/${id}`),
    );
  },
});

async function settle(
  session: Session,
  made: Row,
  flags: WaitFlags & { json?: boolean | undefined; field?: string | undefined },
): Promise<void> {
  const row = flags.wait ? await waitWhile(session, `/v2/volumes/${made.id}`, WORKING, flags) : made;
  if (row.status === 'failed') throw new Failure(String(row.status_reason ?? 'The volume failed.'));
  printOne(row, flags, SHOWN);
}

async function findVolume(session: Session, given: string): Promise<Named> {
  const rows = await session.list<Named>('/v2/volumes');
  const found = rows.find(({ id, name }) => id === given || name === given);
  if (found) return found;
  throw new Failure(`There is no volume "${given}" in this project.`, EXIT.notFound, [namesOf(rows)]);
}

export const volumes = buildRouteMap<string, Shell>({
  routes: { ls, create, grow, rm, ...volumeBackupCommands(findVolume) },
  aliases: { list: 'ls', remove: 'rm' },
  docs: { brief: 'Volumes' },
});
