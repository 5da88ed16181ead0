// The house rules of docs/ARCHITECTURE.md, for what a linter does not see.
import { createRequire } from 'node:module';
import path from 'node:path';
import { Kind, parse, print } from 'graphql';
import { errors } from '../../core/errors';
import { isGroup } from '../../core/groups';
import { allKinds } from '../../models/base/registry';
import { circlesIn, importCircles, importsOf, resolveImport } from '../support/imports';
import { isForeign, readSource as read, repositoryFiles } from '../support/repository';

const load = createRequire(__filename);
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
  'acme-client': ['drivers'],
  nodemailer: ['drivers'],
};

const isRoom = (folder: string): boolean => folder in MAY_IMPORT;
const rooms = sources.filter((file) => isRoom(folderOf(file)) && file.endsWith('.ts'));
const inRoom = (room: string): string[] => rooms.filter((file) => folderOf(file) === room);
const known = new Set(files);

/** Files of the repository that a file imports, for whatever reason. */
function neighboursOf(file: string): string[] {
  return importsOf(file)
    .filter(({ target }) => target.startsWith('.'))
    .map(({ target }) => resolveImport(file, target, known));
}

describe('imports', () => {
  test.each(Object.keys(MAY_IMPORT))('%s knows only what is below it', (room) => {
    expect(inRoom(room)).not.toEqual([]);
    const allowed = [room, ...(MAY_IMPORT[room] as string[])];
    const wrong = inRoom(room).flatMap((file) =>
      neighboursOf(file)
        .filter((target) => !allowed.includes(folderOf(target)) && !/^(schema\/types\.ts|package\.json)$/.test(target))
        .map((target) => `${file} imports ${target}`),
    );
    expect(wrong).toEqual([]);
  });

  test.each(Object.entries(PACKAGES))('%s is known only to %j', (name, allowed) => {
    const users = rooms.filter((file) =>
      importsOf(file).some(({ target }) => target === name || target.startsWith(`${name}/`)),
    );
    expect(users).not.toEqual([]);
    expect(users.filter((file) => !allowed.includes(folderOf(file)))).toEqual([]);
  });

  it('go in no circle between rooms', () => {
    const below = (room: string): string[] => [...new Set(inRoom(room).flatMap(neighboursOf).map(folderOf))];
    const edges = Object.keys(MAY_IMPORT).map((room) => [room, below(room).filter(isRoom)] as const);
    // A room knows itself, which is no circle of rooms.
    expect(circlesIn(new Map(edges))).toEqual([]);
    expect(edges.flatMap(([, others]) => others)).toContain('core');
  });

  it('go in no circle inside a room', () => {
    expect(importCircles(sources.filter((file) => file.endsWith('.ts')))).toEqual([]);
  });

  it('are found with their circles', () => {
    expect(importsOf('test/contract/layout.test.ts')).toContainEqual({
      target: '../support/imports',
      typeOnly: false,
      lazy: false,
    });
    const edges = { a: ['b'], b: ['c'], c: ['b', 'd'], d: ['e'], e: ['f'], f: ['d'] };
    expect(circlesIn(new Map(Object.entries(edges)))).toEqual([
      ['d', 'e', 'f'],
      ['b', 'c'],
    ]);
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

  const schemas = stems('schema', '.graphql');

  it('each schema file has its resolver, and the other way round', () => {
    expect(schemas).toContain('volume');
    expect(schemas.sort()).toEqual(stems('resolvers', '.ts').sort());
  });

  it.each(allKinds().map(({ kind }) => kind))('%s has its model in the file of its name', (kind) => {
    const exported = Object.values(load(`../../models/${kind}`) as Record<string, { kind?: string }>);
    expect(exported.map((value) => value?.kind)).toContain(kind);
  });

  it.each(stems('jobs', '.ts').filter((stem) => /export const job\b/.test(read(`jobs/${stem}.ts`))))(
    'the job of %s works on the table of its model',
    (stem) => {
      const { job } = load(`../../jobs/${stem}`) as { job: { table: string } };
      expect(files).toContain(`models/${stem}.ts`);
      expect(allKinds().find(({ kind }) => kind === stem)?.table ?? job.table).toBe(job.table);
      expect([`${stem}s`, `${stem}es`, stem.replace(/y$/, 'ies')]).toContain(job.table);
    },
  );

  // The account is tested by what is done with it: logging in, sessions, two-factor.
  it.each(schemas.filter((stem) => stem !== 'account'))('the schema file of %s has a test that calls it', (stem) => {
    const named = new RegExp(`^test/(dashboard/)?${stem}(_\\w+)?\\.test\\.ts$`);
    const tests = files.filter((file) => named.test(file));
    const text = tests.map(read).join('\n');
    expect(operationNames(stem).filter((name) => new RegExp(`\\b${name}\\b`).test(text))).not.toEqual([]);
  });

  it('migrations are numbered one by one', () => {
    const numbers = files
      .filter((file) => file.startsWith('migrations/'))
      .map((file) => Number(path.basename(file).slice(0, 4)));
    expect(numbers.sort((a, b) => a - b)).toEqual(numbers.map((_, index) => index + 1));
  });

  // Engines of one kind are made of the same verbs; the object store has those of S3 in its catalog and its endpoint.
  const shapes = [
    ['database', /^drivers\/(database\/(postgresql|mariadb|redis)|hosted_server)\//],
    ['S3', /^(drivers\/object_storage\/embedded|models\/bucket_object)\//],
  ] as const;

  it('no two exported functions share a name, verbs of one shape aside', () => {
    const shapeOf = (file: string): string => shapes.find(([, pattern]) => pattern.test(file))?.[0] ?? file;
    const places = new Map<string, Set<string>>();
    for (const file of rooms.filter((one) => folderOf(one) !== 'migrations'))
      for (const [, name = ''] of read(file).matchAll(
        /^export (?:async )?(?:function\*? |const (?=\w+ = (?:async )?\())(\w+)/gm,
      ))
        places.set(name, (places.get(name) ?? new Set()).add(shapeOf(file)));
    expect(places.size).toBeGreaterThan(1000);
    const shared = [...places].filter(([, found]) => found.size > 1);
    expect(shared.map(([name, found]) => [name, ...found])).toEqual([]);
  });

  it('no room has a name that says nothing', () => {
    expect(files.filter((file) => /(^|\/)(utils?|helpers?|common|lib|services|misc)(\/|\.)/.test(file))).toEqual([]);
  });
});

/** Names of the root fields of a schema file, and the last words of their paths. */
function operationNames(stem: string): string[] {
  return parse(read(`schema/${stem}.graphql`)).definitions.flatMap((definition) => {
    if (definition.kind !== Kind.OBJECT_TYPE_EXTENSION && definition.kind !== Kind.OBJECT_TYPE_DEFINITION) return [];
    if (!/^(Query|Mutation)$/.test(definition.name.value)) return [];
    return (definition.fields ?? []).flatMap((field) => [
      field.name.value,
      ...[...print(field).matchAll(/path: "[^"]*\/(\w+)(?:\/\{[^"]*)?"/g)].map(([, word]) => word as string),
    ]);
  });
}

describe('sizes', () => {
  // SQL, templates of applications and of new kinds too. A string of JSON, a regular expression and an address can't be
  // broken.
  it('no line of a source has more than 120 columns', () => {
    const watched = files.filter(
      (file) =>
        /(\.(ts|js|mjs|graphql|css|html|svg|py|go|sh|txt)|Dockerfile|\.ci\/run)$/.test(file) &&
        !isForeign(file) &&
        !/LICENSE/.test(file),
    );
    const folders = new Set(watched.map(folderOf));
    for (const folder of ['migrations', 'schema', 'scripts', 'templates']) expect(folders).toContain(folder);
    const long = watched.flatMap((file) =>
      read(file)
        .split('\n')
        .flatMap((line, index) =>
          line.length > 120 && !/^ +(example|pattern): "|https?:\/\//.test(line) ? [`${file}:${index + 1}`] : [],
        ),
    );
    expect(long).toEqual([]);
  });

  // Prose wrapped at 120 columns is longer than it reads.
  it('no file has more than 300 lines, pages aside', () => {
    const long = files.filter(
      (file) => /\.(ts|mjs|js|graphql|css|html)$/.test(file) && !isForeign(file) && read(file).split('\n').length > 301,
    );
    expect(long).toEqual([]);
  });
});

/** Codes of the public table whose operations are not built yet, with the group that will throw them. */
const NOT_YET: Record<string, string[]> = {};

describe('error codes', () => {
  const code = rooms
    .filter(
      (file) => folderOf(file) !== 'cli' && !file.startsWith('core/error_table') && !file.startsWith('rest/openapi/'),
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
