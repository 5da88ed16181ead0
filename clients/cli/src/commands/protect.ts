// protect: whether something with data can be deleted.
import { choice, sessionCommand, toggle, tuple, word } from '../command';
import { EXIT, Failure, usageFailure } from '../failure';
import { printOne, type Row } from '../output/print';
import { namesOf, type Session } from '../session';

const COLLECTIONS = {
  application: '/v2/applications',
  database: '/v2/databases',
  volume: '/v2/volumes',
  bucket: '/v2/buckets',
  dns_zone: '/v2/dns_zones',
  cdn_zone: '/v2/cdn_zones',
  email_domain: '/v2/email_domains',
  email_relay_zone: '/v2/email_relay_zones',
  registry: '/v2/registries',
  project: '/v2/projects',
} as const;
type Kind = keyof typeof COLLECTIONS;
type Named = Row & { id: string; name: string };

export const protect = sessionCommand<
  { readonly off?: boolean | undefined; readonly kind?: Kind | undefined },
  [string]
>({
  brief: 'Protect something with data from deletion',
  text:
    'An application, database, volume, bucket, zone, sending domain or registry by its name or id; a project, with ' +
    'all that holds data in it, by --kind project. --off ends it.',
  target: 'project',
  flags: {
    off: toggle('End the protection'),
    kind: choice('Where several have the name', Object.keys(COLLECTIONS) as Kind[]),
  },
  args: tuple(word('name', 'Name or id')),
  async run(session, flags, given) {
    const { path, row } = await find(session, given, flags.kind);
    const body = { deletion_protection: !flags.off };
    const call = { body, ...(path === COLLECTIONS.project && { project: 'none' as const }) };
    const answer = await session.request('PATCH', `${path}/${row.id}`, call);
    printOne(answer, flags, { name: 'name', 'deletion protection': 'deletion_protection', id: 'id' });
  },
});

async function find(session: Session, given: string, kind: Kind | undefined): Promise<{ path: string; row: Named }> {
  const kinds = kind ? [kind] : (Object.keys(COLLECTIONS) as Kind[]).filter((one) => one !== 'project');
  const lists = await Promise.all(kinds.map((one) => listOf(session, one)));
  const found = lists.flatMap((rows, index) =>
    rows
      .filter(({ id, name }) => id === given || name === given)
      .map((row) => ({ kind: kinds[index] as Kind, path: COLLECTIONS[kinds[index] as Kind], row })),
  );
  const [one] = found;
  if (!one) throw new Failure(`There is no "${given}" in this project.`, EXIT.notFound, [namesOf(lists.flat())]);
  if (found.length > 1)
    throw usageFailure(`Several have the name ${given}.`, `Pass --kind ${found.map((row) => row.kind).join(' or ')}.`);
  return one;
}

function listOf(session: Session, kind: Kind): Promise<Named[]> {
  const call = kind === 'project' ? ({ project: 'none' } as const) : undefined;
  return session.list<Named>(COLLECTIONS[kind], {}, call);
}
