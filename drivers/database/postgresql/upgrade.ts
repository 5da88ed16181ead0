// To another major version: a server aside with empty data takes what the old one dumps, while nobody but the platform can
// reach either. The old data stay until the new server answers, and come back when anything fails.
import path from 'node:path';
import { CommandFailed } from '../../command';
import { DriverError, driverContext } from '../../driver';
import type { DriverContext } from '../../driver';
import { erase, ownerOf, writeNote } from '../home';
import { isReplacing, replaceData } from '../replacement';
import { majorOf, systemIdentifierOf, type Cluster } from './cluster';
import { configure } from './configuration';
import { connectionOf, furnish, initialize } from './data';
import { bring, ensureContent } from './ensure';
import { programsOf, requireTools, runPiped, type Programs } from './programs';
import { asideOf, orGoBack, quietBoth, tryOut } from './restore';
import { serve, whenReady } from './server';
import { inSession, name, text } from './session';
import { firstTimeline } from './timelines';

const readyWithinMs = 120_000;
const tools = ['pg_dump', 'pg_restore'];

/** `cluster` is of the new version. @throws DriverError unsupported, with what to install; or why it failed */
export async function upgrade(cluster: Cluster, fromVersion: string, ctx: DriverContext): Promise<void> {
  const { home, spec, estate } = cluster;
  if ((await majorOf(home.data)) === spec.version && !(await isReplacing(home)))
    return void (await bring(cluster, ctx));
  const old: Cluster = {
    ...cluster,
    spec: { ...spec, version: fromVersion },
    programs: await programsOf(estate, fromVersion),
  };
  const bin = toolsOf(cluster.programs, old.programs);
  await orGoBack(old, ctx, () =>
    replaceData(
      home,
      {
        key: `upgrade-${spec.version}`,
        fill: (draft) => carryOver(cluster, old, { draft, bin }, ctx).catch(told),
        stop: () => quietBoth(cluster, ctx),
        prove: async () => {
          await tryOut(cluster, ctx);
          await writeNote(home, 'made', { version: spec.version });
          await writeNote(home, 'timelines', firstTimeline);
        },
        goBack: () => Promise.resolve(),
      },
      ctx,
    ),
  );
  await erase(asideOf(home).path, ctx);
  await bring(cluster, ctx);
}

// Worth no second try: the data, or the programs, are what they are.
function told(cause: unknown): never {
  if (!(cause instanceof CommandFailed)) throw cause;
  throw Object.assign(
    new DriverError(
      'invalid',
      'The data of this database could not be carried over to the new version. It is back on the old one.',
    ),
    { cause },
  );
}

// Those of the newer version know both; those of the older one are the second choice.
function toolsOf(newer: Programs, older: Programs): string {
  const whole = [newer, older].find((one) => tools.every((tool) => one.tools.includes(tool)));
  if (whole === undefined) requireTools(newer, tools);
  return (whole ?? newer).bin;
}

async function carryOver(
  cluster: Cluster,
  old: Cluster,
  { draft, bin }: { draft: string; bin: string },
  ctx: DriverContext,
): Promise<void> {
  const { home, spec } = cluster;
  await quietBoth(cluster, ctx);
  await erase(asideOf(home).path, ctx);
  const aside: Cluster = { ...cluster, home: { ...asideOf(home), data: draft } };
  await furnish(aside.home);
  await initialize(aside, draft, ctx);
  await serveClosed(aside, 'aside', ctx);
  await ensureContent(aside, driverContext(readyWithinMs, ctx.signal), 'aside');
  await serveClosed(old, 'server', ctx);
  await whenReady(old, 'server', {}, async () => undefined, driverContext(readyWithinMs, ctx.signal));
  const database = spec.database_name ?? 'postgres';
  const dump: [string, ...string[]] = [
    path.join(bin, 'pg_dump'),
    ...connectionOf(old),
    '-w',
    '-Fc',
    '-Z',
    '0',
    '-d',
    database,
  ];
  await runPiped(
    dump,
    [path.join(bin, 'pg_restore'), ...connectionOf(aside), '-w', '--exit-on-error', '-d', database],
    ctx,
  );
  await carrySettings(old, aside, database);
  await inSession(aside, { data: draft, database, statementMs: 3_600_000 }, (session) => session.query('analyze'));
  await quietBoth(cluster, ctx);
}

async function serveClosed(cluster: Cluster, which: 'server' | 'aside', ctx: DriverContext): Promise<void> {
  const { home } = cluster;
  await configure(
    cluster,
    home.data,
    await systemIdentifierOf(home.data),
    await ownerOf(home),
    { kind: 'private' },
    ctx,
  );
  await serve(cluster, which, home.data, ctx);
}

// What users have set for themselves is no part of a dump of the database.
async function carrySettings(old: Cluster, aside: Cluster, database: string): Promise<void> {
  const { rows } = await inSession(old, {}, (session) =>
    session.query<{ role: string; here: boolean; settings: string[] }>(
      `select r.rolname as role, s.setdatabase <> 0 as here, s.setconfig as settings from pg_db_role_setting s join pg_roles r on r.oid = s.setrole
     where not r.rolsuper and r.rolname not like 'platform\\_%'`,
    ),
  );
  await inSession(aside, { data: aside.home.data }, async (session) => {
    for (const { role, here, settings } of rows) {
      for (const setting of settings) {
        const [key = '', ...value] = setting.split('=');
        if (key === 'role') continue;
        const place = here ? ` in database ${name(database)}` : '';
        const values = key === 'search_path' ? value.join('=') : text(value.join('='));
        // One that the new version does not know any more is left behind.
        await session.query(`alter role ${name(role)}${place} set ${name(key)} = ${values}`).catch(() => undefined);
      }
    }
  });
}
