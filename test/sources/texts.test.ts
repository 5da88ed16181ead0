// What the texts of all sources keep to: their sizes, the error codes that they throw, and words that stand nowhere.
import { errors } from '../../core/errors';
import { isGroup } from '../../core/groups';
import { isForeign, readSource as read, repositoryFiles } from '../support/runner/repository';

const files = repositoryFiles();
const product = files.filter((file) =>
  /^(core|contract|db|engines|drivers|models|jobs|migrations|resolvers|rest|server)\/.*\.ts$/.test(file),
);

describe('sizes', () => {
  // SQL, templates of applications and of new kinds too. A string of JSON, a regular expression and an address can't be
  // broken.
  it('no line of a source has more than 120 columns', () => {
    const watched = files.filter(
      (file) =>
        /(\.(ts|tsx|js|cjs|mjs|graphql|css|html|svg|py|go|sh|txt)|Dockerfile|\.ci\/run)$/.test(file) &&
        !isForeign(file) &&
        !/LICENSE/.test(file),
    );
    const tops = new Set(watched.map((file) => file.split('/')[0]));
    for (const top of ['migrations', 'schema', 'tools', 'templates']) expect(tops).toContain(top);
    const long = watched.flatMap((file) =>
      read(file)
        .split('\n')
        .flatMap((line, index) =>
          line.length > 120 && !/^ +(example|pattern): "|https?:\/\//.test(line) ? [`${file}:${index + 1}`] : [],
        ),
    );
    expect(long).toEqual([]);
  });

  it('at most 17 rooms at the top', () => {
    const tops = new Set(files.filter((file) => file.includes('/')).map((file) => file.split('/')[0] as string));
    expect([...tops].filter((top) => !top.startsWith('.')).length).toBeLessThanOrEqual(17);
  });

  // Prose wrapped at 120 columns is longer than it reads.
  it('no file has more than 400 lines, pages aside', () => {
    const long = files.filter(
      (file) => /\.(ts|mjs|js|graphql|css|html)$/.test(file) && !isForeign(file) && read(file).split('\n').length > 401,
    );
    expect(long).toEqual([]);
  });
});

describe('words', () => {
  it('people log in and out, here as in the API: nothing that they read says "sign"', () => {
    const shown = files.filter((file) => /^(clients|docs|server|schema|tools)\/.*\.(tsx?|md|graphql|html)$/.test(file));
    const found = shown.flatMap((file) =>
      [...read(file).matchAll(/\b[Ss]ign(?:ed|s|ing)?[ -](?:in|out|up)\b(?! the\b)/g)].map(
        ([word]) => `${file}: ${word}`,
      ),
    );
    expect(found.filter((one) => !one.endsWith(': sign-in'))).toEqual([]);
  });
});

/** Codes of the public table whose operations are not built yet, with the group that will throw them. */
const NOT_YET: Record<string, string[]> = {};

describe('error codes', () => {
  const code = product
    .filter(
      (file) =>
        !file.startsWith('server/operator/') &&
        !file.startsWith('core/error_table') &&
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
