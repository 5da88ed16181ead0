// docs/adding-a-kind.md, done: its commands, and what its blocks of code add to the files of the bookmark.
import * as fs from 'node:fs';
import * as path from 'node:path';
import { ROOT } from './generated_project';

const IMPORTS = `import type { Context } from '../../core/context';
import { Application } from '../applications/application';
`;
const BOOKMARK = /^(?:\d{4}_)?bookmarks?\.\w+$/;
const PAGE = fs.readFileSync(path.join(ROOT, 'docs/adding-a-kind.md'), 'utf8');

/** The words behind each `npm run new --` of the page. */
export const pageCommands = (): string[][] =>
  [...PAGE.matchAll(/^npm run new -- (.+)$/gm)].map(([, words]) => (words as string).split(' '));

/** Changes the files of the bookmark that was generated in a copy of the project as the page says. */
export function followPage(copy: string): void {
  for (const folder of ['schema/projects', 'models/projects', 'resolvers/projects', 'migrations'])
    for (const name of fs.readdirSync(path.join(copy, folder)).filter((one) => BOOKMARK.test(one))) {
      const file = path.join(copy, folder, name);
      fs.writeFileSync(file, withPage(`${folder}/${name}`, fs.readFileSync(file, 'utf8')));
    }
}

/** The blocks of code of the page that begin so, without the lines that stand for what is there already. */
function block(begin: string): string {
  const found = [...PAGE.matchAll(/^```(?:graphql|ts)\n([^]*?)^```$/gm)].find(([, code]) => code?.startsWith(begin));
  if (!found) throw new Error(`docs/adding-a-kind.md has no block that begins with ${begin}`);
  return found[1] as string;
}

/** Does what the page says of a file of its bookmark. */
function withPage(file: string, text: string): string {
  const replaced = (from: string | RegExp, to: string, source = text): string => {
    if (source.search(from) < 0) throw new Error(`${file} has no ${String(from)}`);
    return source.replace(from, () => to);
  };
  if (file.startsWith('schema/')) return withPageSchema(text, replaced);
  if (file.startsWith('resolvers/')) return replaced(/(?= +deleteBookmark:)/, block('followBookmark:'));
  if (file.startsWith('migrations/')) {
    const [column, index] = block('table.specificType').split('// …\n') as [string, string];
    const unique = block("'create unique index bookmarks__already_exists");
    return text
      .replace(/(?<=^const INDEXES = \[\n)/m, () => index + unique)
      .replace(/(?=^ +table\.specificType\('name')/m, () => column);
  }
  const [filters, sorts, field] = block('static override readonly filters').split(/\n+/) as [string, string, string];
  return [
    [/static override readonly filters = .*/, filters],
    [/static override readonly sorts = .*/, sorts],
    [/declare name: string;\n/, `declare name: string;\n  ${field}\n\n${block('/** Points the bookmark to the page')}`],
    [/(?=^import \{ Resource \})/m, IMPORTS],
  ].reduce((code, [from, to]) => replaced(from as RegExp, to as string, code), text);
}

function withPageSchema(text: string, replaced: (from: RegExp, to: string, source?: string) => string): string {
  const [type, input] = block('type Bookmark {')
    .split('\n}\n')
    .map((part) => part.replace(/^[^]*# …\n/, ''));
  const verb = block('"Points the bookmark to the page');
  const [operation, ownInput] = verb.split(/\n(?=input )/) as [string, string];
  return [
    [/(?<=^type Bookmark \{\n)/m, `${type}\n`],
    [/(?<=^input CreateBookmarkInput \{\n)/m, `${input}\n`],
    [/(?<=^ +)listBookmarks\([^]*?@inProject\n/m, block('listBookmarks(')],
    [/(?<=^extend type Mutation \{\n)/m, operation],
    [/$(?![^])/, `\n${ownInput}`],
    [
      /@errors\(codes: \["name_taken", "quota_exceeded"\]\)/,
      /@errors\(codes: \["name_taken", "already_exists".*?\]\)/.exec(PAGE)?.[0] as string,
    ],
  ].reduce((code, [from, to]) => replaced(from as RegExp, to as string, code), text);
}
