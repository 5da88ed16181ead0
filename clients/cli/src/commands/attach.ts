// attach and detach: databases and volumes, by their names.
import { sessionCommand, text, toggle, tuple, word } from '../command';
import { EXIT, Failure, usageFailure } from '../failure';
import { notice } from '../output/notice';
import { printOne, printRows, type Row } from '../output/print';
import { confirm } from '../output/terminal';
import type { Session } from '../session';
import { waitWhile } from '../settle';

type Named = Row & { id: string; name: string };
type Output = { json?: boolean | undefined; field?: string | undefined };
interface Found {
  kind: 'database' | 'volume';
  row: Named;
}

const NAME = tuple(word('name', 'Name or id of the database or volume'));
const RESTART = { restart: toggle('Restart the application, and wait until it runs') };
const TAKES_EFFECT = 'It takes effect with the next deployment or restart: svc restart';

async function findAttachable(session: Session, given: string): Promise<Found> {
  const [databases, volumes] = await Promise.all([
    session.list<Named>('/v2/databases'),
    session.list<Named>('/v2/volumes'),
  ]);
  const all: Found[] = [
    ...databases.map((row) => ({ kind: 'database' as const, row })),
    ...volumes.map((row) => ({ kind: 'volume' as const, row })),
  ];
  const found = all.filter(({ row }) => row.id === given || row.name === given);
  if (found.length > 1)
    throw usageFailure(
      `There is a database and a volume of the name ${given}. Pass the id.`,
      found.map(({ kind, row }) => `${kind}: ${row.id}`).join(', '),
    );
  if (found[0]) return found[0];
  throw new Failure(`There is no database and no volume "${given}" in this project.`, EXIT.notFound, [
    all.length ? `There are: ${all.map(({ kind, row }) => `${row.name} (${kind})`).join(', ')}` : 'There is none.',
  ]);
}

type AttachFlags = {
  readonly prefix?: string | undefined;
  readonly mount?: string | undefined;
  readonly restart?: boolean | undefined;
};

export const attach = sessionCommand<AttachFlags, [string]>({
  brief: 'Attach a database or a volume to the application',
  text:
    'A database sets variables, such as DATABASE_URL; --prefix names them otherwise. A volume needs --mount, the ' +
    'folder at which the application finds it.\n\n' +
    '  svc attach orders --restart\n' +
    '  svc attach uploads --mount /data',
  flags: {
    prefix: text('Of a database: beginning of its variables, such as ORDERS', 'name'),
    mount: text('Of a volume: the folder in the application, such as /data', 'path'),
    ...RESTART,
  },
  args: NAME,
  async run(session, flags, given) {
    const application = await session.application();
    const { kind, row } = await findAttachable(session, given);
    if (kind === 'database') await attachDatabase(session, application, row, flags);
    else await attachVolume(session, application, row, flags);
    await restartOrSay(session, application, flags);
  },
});

async function attachDatabase(
  session: Session,
  application_id: string,
  { id, name }: Named,
  flags: AttachFlags & Output,
): Promise<void> {
  if (flags.mount !== undefined) throw usageFailure(`${name} is a database. --mount is for volumes.`);
  const body = { application_id, ...(flags.prefix && { env_prefix: flags.prefix }) };
  const made = await session.request('POST', `/v2/databases/${id}/attachments`, { body });
  printOne(made, flags, {
    attached: () => name,
    variables: () => (made.variables as string[]).join(', '),
    id: 'id',
  });
}

async function attachVolume(
  session: Session,
  application_id: string,
  { id, name }: Named,
  flags: AttachFlags & Output,
): Promise<void> {
  if (flags.prefix !== undefined) throw usageFailure(`${name} is a volume. --prefix is for databases.`);
  if (flags.mount === undefined)
    throw usageFailure(`Where does the application find the volume ${name}?`, 'Pass --mount, such as --mount /data.');
  const body = { application_id, mount_path: flags.mount };
  const changed = await session.request('PATCH', `/v2/volumes/${id}`, { body });
  printOne(changed, flags, { attached: 'name', 'mount path': 'mount_path', status: 'status', id: 'id' });
}

export const detach = sessionCommand<{ readonly restart?: boolean | undefined }, [string]>({
  brief: 'Detach a database or a volume from the application',
  text: 'What it contains stays. The variables that a database has set are removed.',
  asks: true,
  output: false,
  flags: RESTART,
  args: NAME,
  async run(session, flags, given) {
    const application = await session.application();
    const { kind, row } = await findAttachable(session, given);
    const take =
      kind === 'database'
        ? await databaseDetacher(session, application, row)
        : volumeDetacher(session, application, row);
    await confirm(`Detach the ${kind} ${row.name}? What it contains stays.`, flags);
    await take();
    notice(`Detached ${row.name}.`);
    await restartOrSay(session, application, flags);
  },
});

async function databaseDetacher(
  session: Session,
  application: string,
  { id, name }: Named,
): Promise<() => Promise<void>> {
  const path = `/v2/databases/${id}/attachments`;
  const found = await session.list(path, { application_id: application });
  if (!found.length) throw notAttached(name);
  return async () => {
    for (const one of found) await session.send('DELETE', `${path}/${String(one.id)}`);
  };
}

function volumeDetacher(
  session: Session,
  application: string,
  { id, name, application_id }: Named,
): () => Promise<void> {
  if (application_id !== application) throw notAttached(name);
  return async () => void (await session.request('PATCH', `/v2/volumes/${id}`, { body: { application_id: null } }));
}

const notAttached = (name: string): Failure =>
  new Failure(`${name} is not attached to the application.`, EXIT.notFound, ['List what is: svc attachments']);

async function restartOrSay(
  session: Session,
  application: string,
  { restart }: { restart?: boolean | undefined },
): Promise<void> {
  if (!restart) return notice(TAKES_EFFECT);
  const path = `/v2/applications/${application}`;
  await session.request('POST', `${path}/restart`, { body: {} });
  const row = await waitWhile(session, path, ['restarting'], {});
  notice(`The application is ${row.status}.`);
}

export const attachments = sessionCommand({
  brief: 'List what is attached to the application',
  async run(session, flags) {
    const application = await session.application();
    const [attached, databases, volumes] = await Promise.all([
      session.list(`/v2/applications/${application}/attachments`),
      session.list<Named>('/v2/databases'),
      session.list('/v2/volumes', { application_id: application }),
    ]);
    const nameOf = (id: unknown): string => databases.find((one) => one.id === id)?.name ?? String(id);
    const rows = [
      ...attached.map((one) => ({
        ...{ kind: 'database', name: nameOf(one.database_id), id: one.id },
        seen_as: (one.variables as string[]).join(', '),
      })),
      ...volumes.map(({ id, name, mount_path }) => ({ kind: 'volume', name, id, seen_as: mount_path })),
    ];
    printRows(rows, { NAME: 'name', KIND: 'kind', 'SEEN AS': 'seen_as' }, flags);
  },
});
