// What sources and pages refer to can be opened here: decisions, pages, sections. Links and files: docs.test.ts.
import path from 'node:path';
import { anchorsOf, isForeign, readSource as read, repositoryFiles } from '../support/runner/repository';

const files = repositoryFiles().filter((file) => !isForeign(file));
const texts = files.filter(
  (file) => /\.(ts|mjs|js|graphql|md|tsv|yml)$/.test(file) && !file.startsWith('test/golden/'),
);
const existing = new Set(files);
const pages = files.filter((file) => file.endsWith('.md') && file !== 'CHANGELOG.md');
/** Names of pages, by the last part of their path. */
const byName = new Set(pages.map((page) => path.basename(page)));

/** The pages that `name` can mean in `file`: from the root, from docs/, beside the file. */
function resolvePage(file: string, name: string): string | undefined {
  const candidates = [name, path.join('docs', name), path.join(path.dirname(file), name)];
  return candidates.find((candidate) => pages.includes(path.normalize(candidate)));
}

/** Whether a source is there, from the root or beside the file; one that is compiled may be named as its program. */
function isThere(file: string, name: string): boolean {
  const candidates = [name, path.join(path.dirname(file), name)].map((one) => path.normalize(one));
  return candidates.some((one) => existing.has(one) || existing.has(one.replace(/\.js$/, '.ts')));
}

/** Matches of a pattern with the file that has them. */
function matches(among: string[], pattern: RegExp): [file: string, match: RegExpMatchArray][] {
  return among.flatMap((file) =>
    [...read(file).matchAll(pattern)].map((match) => [file, match] as [string, RegExpMatchArray]),
  );
}

describe('references', () => {
  it('cite a decision by its page', () => {
    const bare = matches(texts, /(?<![\w/[])decisions? \d+\b/gi);
    expect(bare.map(([file, [text]]) => `${file}: ${text}`)).toEqual([]);
  });

  it('to numbered decisions lead to one page each', () => {
    const cited = matches(texts, /decisions\/(\d{4}(?:-[\w-]+)?)/g);
    expect(cited.length).toBeGreaterThan(10);
    const lost = cited.filter(
      ([, [, name]]) => files.filter((file) => file.startsWith(`docs/decisions/${name}`)).length !== 1,
    );
    expect(lost.map(([file, [text]]) => `${file}: ${text}`)).toEqual([]);
  });

  it('to pages of this repository lead to one, and to a section that it has', () => {
    const cited = matches(
      texts,
      /(?<![\w/.'-])((?:[\w.-]+\/)*[\w-]+\.md)(?:`|\))?(?:\s+(?:(?:\/\/|\*)\s)?§(\d+(?:\.\d+)?))?/g,
    ).filter(
      ([, [, name = '']]) => name.startsWith('docs/') || (byName.has(path.basename(name)) && name.includes('/')),
    );
    expect(cited.length).toBeGreaterThan(40);
    const lost = cited.filter(([file, [, name = '', section]]) => {
      const page = resolvePage(file, name);
      return !page || (section && !new RegExp(`^#+ ${section.replace('.', '\\.')}[. ]`, 'm').test(read(page)));
    });
    expect(lost.map(([file, [text]]) => `${file}: ${text}`)).toEqual([]);
  });

  it('to a section say of which page or standard', () => {
    const sources = texts.filter((file) => !file.endsWith('.md'));
    const bare = matches(sources, /^.*§.*$/gm).filter(
      ([file, { 0: line, index = 0 }]) =>
        !/\.md|\bRFC|FIPS|[Ss]tandard/.test(read(file).slice(Math.max(0, index - 130), index) + line),
    );
    expect(bare.map(([file, [line]]) => `${file}: ${line.trim()}`)).toEqual([]);
  });

  it('to a heading of a page lead to one', () => {
    const cited = matches(texts, /((?:[\w.-]+\/)*[\w-]+\.md)#([\w-]+)/g).filter(
      ([, [, name = '']]) => !/:\/\//.test(name),
    );
    expect(cited.length).toBeGreaterThan(5);
    const lost = cited.filter(([file, [, name = '', anchor]]) => {
      const page = resolvePage(file, name);
      return !page || !anchorsOf(page).includes(anchor as string);
    });
    expect(lost.map(([file, [text]]) => `${file}: ${text}`)).toEqual([]);
  });

  it('to sources, in comments, lead to files', () => {
    const sources = texts.filter((file) => file.endsWith('.ts'));
    const comments = sources.flatMap((file) =>
      [...read(file).matchAll(/^\s*(?:\/\/|\/?\*).*$/gm)].map(([line]) => [file, line] as const),
    );
    const lost = comments.flatMap(([file, line]) =>
      [...line.matchAll(/(?<![\w/.<>:-])((?:[\w-]+\/)+[\w-]+\.(?:ts|js|mjs|graphql|tsv))\b/g)]
        .map(([, name = '']) => name)
        .filter((name) => !/NNNN|bookmark|^dist\/|^node_modules\//.test(name))
        .filter((name) => !isThere(file, name))
        .map((name) => `${file}: ${name}`),
    );
    expect(lost).toEqual([]);
  });
});

describe('pages', () => {
  it('have lines of at most 120 columns, tables and code aside', () => {
    const long = pages
      .filter((page) => !page.startsWith('docs/contract/'))
      .flatMap((page) =>
        read(page)
          .replace(/^ *```[\s\S]*?^ *```/gm, '')
          .split('\n')
          .filter((line) => line.length > 120 && !line.startsWith('|') && / /.test(line.trim()))
          .map((line) => `${page}: ${line.slice(0, 60)}`),
      );
    expect(long).toEqual([]);
  });
});
