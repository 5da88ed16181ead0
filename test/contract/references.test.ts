// What sources and pages refer to can be opened here: decisions, pages, sections. Links and files: docs.test.ts.
import path from 'node:path';
import { isForeign, readSource as read, repositoryFiles } from '../support/repository';

const files = repositoryFiles().filter((file) => !isForeign(file));
const texts = files.filter(
  (file) => /\.(ts|mjs|js|graphql|md|tsv|yml)$/.test(file) && !file.startsWith('test/golden/'),
);
const pages = files.filter((file) => file.endsWith('.md') && file !== 'CHANGELOG.md');
/** Names of pages, by the last part of their path. */
const byName = new Set(pages.map((page) => path.basename(page)));

/** The pages that `name` can mean in `file`: from the root, from docs/, beside the file. */
function resolvePage(file: string, name: string): string | undefined {
  const candidates = [name, path.join('docs', name), path.join(path.dirname(file), name)];
  return candidates.find((candidate) => pages.includes(path.normalize(candidate)));
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
    const cited = matches(texts, /(?<![\w/.'-])((?:[\w.-]+\/)*[\w-]+\.md)(?:`|\))?(?: §(\d+(?:\.\d+)?))?/g).filter(
      ([, [, name = '']]) => name.startsWith('docs/') || (byName.has(path.basename(name)) && name.includes('/')),
    );
    expect(cited.length).toBeGreaterThan(40);
    const lost = cited.filter(([file, [, name = '', section]]) => {
      const page = resolvePage(file, name);
      return !page || (section && !new RegExp(`^#+ ${section.replace('.', '\\.')}[. ]`, 'm').test(read(page)));
    });
    expect(lost.map(([file, [text]]) => `${file}: ${text}`)).toEqual([]);
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
