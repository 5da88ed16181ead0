// The house rules of docs/ARCHITECTURE.md, for what a linter does not see.
import path from 'node:path';
import { errors } from '../../core/errors';
import { isGroup } from '../../core/groups';
import { allKinds } from '../../models/base/registry';
import { isForeign, readSource as read, repositoryFiles, ROOT } from '../support/repository';

const files = repositoryFiles();
const folderOf = (file: string): string => file.split('/')[0] as string;
const sources = files.filter((file) => /\.(ts|mjs|js)$/.test(file) && !isForeign(file));

/** Folder -> folders whose files it may import. */
const MAY_IMPORT: Record<string, string[]> = {
  core: [],
  contract: ['core'],
  db: ['core'],
  drivers: ['core'],
  models: ['core', 'db'],
  jobs: ['core', 'db', 'models', 'drivers'],
  resolvers: ['core', 'contract', 'models'],
  rest: ['core', 'contract'],
  migrations: ['core', 'db', 'models'],
  platform: ['core', 'contract', 'db', 'models', 'drivers', 'jobs', 'resolvers', 'rest'],
  graphql: ['core', 'contract', 'rest', 'platform'],
  agents: ['core', 'db', 'models', 'drivers', 'jobs', 'platform'],
  server: ['core', 'contract', 'db', 'models', 'drivers', 'jobs', 'resolvers', 'rest', 'platform', 'graphql', 'agents'],
  cli: ['core', 'contract', 'db', 'models', 'drivers', 'jobs', 'resolvers', 'rest', 'platform', 'server'],
};

/** Packages that only some rooms know. */
const PACKAGES: Record<string, string[]> = {
  express: ['server', 'graphql'],
  '@apollo/server': ['graphql'],
  'sofa-api': ['rest'],
  'graphql-jit': ['rest', 'graphql'],
  'find-my-way': ['rest'],
  knex: ['db', 'migrations'],
  objection: ['db'],
  // The driver of PostgreSQL servers speaks to them.
  pg: ['db', 'platform', 'drivers'],
  graphql: ['core', 'contract', 'resolvers', 'rest', 'graphql', 'platform'],
  pino: ['core'],
  'prom-client': ['server'],
  'graphql-sse': ['graphql'],
  'acme-client': ['drivers'],
};

function importsOf(file: string): string[] {
  return [...read(file).matchAll(/(?:from|import|require\()\s*'([^']+)'/g)].map((match) => match[1] as string);
}

describe('imports', () => {
  const rooms = sources.filter((file) => folderOf(file) in MAY_IMPORT && file.endsWith('.ts'));

  test.each(Object.keys(MAY_IMPORT))('%s knows only what is below it', (room) => {
    const wrong = rooms
      .filter((file) => folderOf(file) === room)
      .flatMap((file) =>
        importsOf(file)
          .filter((target) => target.startsWith('.'))
          .flatMap((target) => {
            const place = path.relative(ROOT, path.resolve(ROOT, path.dirname(file), target));
            const other = folderOf(place);
            return other === room || MAY_IMPORT[room]?.includes(other) || /^(schema\/types|package\.json)$/.test(place)
              ? []
              : [`${file} imports ${place}`];
          }),
      );
    expect(wrong).toEqual([]);
  });

  test.each(Object.entries(PACKAGES))('%s is known only to %j', (name, allowed) => {
    const users = rooms.filter((file) =>
      importsOf(file).some((target) => target === name || target.startsWith(`${name}/`)),
    );
    expect(users.filter((file) => !allowed.includes(folderOf(file)))).toEqual([]);
  });

  it('go in no circle between rooms', () => {
    for (const [room, below] of Object.entries(MAY_IMPORT))
      for (const other of below) expect([room, other, MAY_IMPORT[other]?.includes(room)]).toEqual([room, other, false]);
  });

  it('take the schema types only as types', () => {
    const wrong = sources.filter((file) => /import \{[^}]*\} from '[./]*schema\/types'/.test(read(file)));
    expect(wrong).toEqual([]);
  });

  it('resolvers write no SQL', () => {
    const wrong = files.filter(
      (file) =>
        file.startsWith('resolvers/') &&
        /\b(select|insert into|delete from)\b[^;]*\b(from|values|where)\b/i.test(
          read(file).replace(/\/\/.*|"[^"]*"/g, ''),
        ),
    );
    expect(wrong).toEqual([]);
  });
});

describe('stems', () => {
  const stems = (folder: string, ending: string): string[] =>
    files
      .filter(
        (file) =>
          new RegExp(`^${folder}/[a-z]\\w*${ending.replace('.', '\\.')}$`).test(file) &&
          !/\/(index|types)\.ts$/.test(file),
      )
      .map((file) => path.basename(file, ending));

  it('each schema file has its resolver, and the other way round', () => {
    expect(stems('schema', '.graphql').sort()).toEqual(stems('resolvers', '.ts').sort());
  });

  it('each kind has its model in the file of its name', () => {
    for (const { kind } of allKinds()) expect(files).toContain(`models/${kind}.ts`);
  });

  it('each job has the model of its kind', () => {
    const jobs = stems('jobs', '.ts').filter((stem) => /export const job\b/.test(read(`jobs/${stem}.ts`)));
    for (const stem of jobs) expect(files).toContain(`models/${stem}.ts`);
  });

  it('each schema file has its test', () => {
    const tests = files.filter((file) => file.endsWith('.test.ts')).map((file) => path.basename(file, '.test.ts'));
    // The account is tested by what is done with it: logging in, sessions, two-factor.
    expect(stems('schema', '.graphql').filter((stem) => stem !== 'account' && !tests.includes(stem))).toEqual([]);
  });

  it('migrations are numbered one by one', () => {
    const numbers = files
      .filter((file) => file.startsWith('migrations/'))
      .map((file) => Number(path.basename(file).slice(0, 4)));
    expect(numbers.sort((a, b) => a - b)).toEqual(numbers.map((_, index) => index + 1));
  });

  it('no room has a name that says nothing', () => {
    expect(files.filter((file) => /(^|\/)(utils?|helpers?|common|lib|services|misc)(\/|\.)/.test(file))).toEqual([]);
  });
});

describe('sizes', () => {
  it('no file has more than 300 lines', () => {
    const long = files.filter(
      (file) =>
        /\.(ts|mjs|js|graphql|md|css|html)$/.test(file) && !isForeign(file) && read(file).split('\n').length > 301,
    );
    expect(long).toEqual([]);
  });
});

/** Codes of the public table whose operations are not built yet, with the group that will throw them. */
const NOT_YET: Record<string, string[]> = {
  'Object storage': ['bucket_not_empty', 'policy_invalid'],
  DNS: ['record_conflict', 'record_invalid', 'zone_file_invalid'],
  Email: ['domain_not_verified'],
  Integrations: ['not_owner_project', 'provider_auth_failed'],
};

describe('error codes', () => {
  const code = files
    .filter(
      (file) =>
        /^(core|contract|db|models|rest|graphql|platform|agents|server|resolvers|jobs|drivers|migrations)\/.*\.ts$/.test(
          file,
        ) &&
        file !== 'core/error_table.ts' &&
        !file.startsWith('rest/openapi/'),
    )
    .map(read)
    .join('\n');
  /** Thrown by name, or by an index that is named after the code. */
  const isThrown = (name: string): boolean => new RegExp(`['"]${name}['"]|__${name}(?:__|\\W)`).test(code);
  const waiting = Object.values(NOT_YET).flat();

  it('are all thrown somewhere, or wait for their group', () => {
    expect(Object.keys(errors).filter((name) => !isThrown(name) && !waiting.includes(name))).toEqual([]);
  });

  it('leave the list of the waiting when they are thrown', () => {
    expect(waiting.filter((name) => isThrown(name) || !(name in errors))).toEqual([]);
    expect(Object.keys(NOT_YET).filter((group) => !isGroup(group))).toEqual([]);
  });
});

describe('words', () => {
  const texts = files.filter((file) => !/\.(png|ico|gif|woff2?)$/.test(file) && !isForeign(file));

  it('nothing is left to do later without saying so in an issue', () => {
    const later = new RegExp(`\\b(${['TO' + 'DO', 'FIX' + 'ME', 'X'.repeat(3), 'HA' + 'CK'].join('|')})\\b`);
    expect(texts.filter((file) => later.test(read(file)))).toEqual([]);
  });

  it('no path of a machine and no registry but the public one', () => {
    const machine = new RegExp(`(^|[^\\w.])/(${['wo' + 'rk', 'Users', 'mnt'].join('|')})/[a-z]|/home/[a-z]+/`);
    expect(texts.filter((file) => machine.test(read(file)))).toEqual([]);
    for (const lock of files.filter((file) => file.endsWith('package-lock.json'))) {
      const hosts = new Set([...read(lock).matchAll(/"resolved": "(https?:\/\/[^/]+)/g)].map((match) => match[1]));
      hosts.delete('https://registry.npmjs.org');
      expect([lock, ...hosts]).toEqual([lock]);
    }
  });

  it('no key of the platform stands anywhere', () => {
    expect(texts.filter((file) => /\bsvc_(proj_)?[0-9A-Za-z]{39}\b/.test(read(file)))).toEqual([]);
  });
});
