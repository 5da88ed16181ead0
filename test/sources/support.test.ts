// Files below test/ that are no test files are loaded once for all test files of a process.
import { COPIED } from '../support/runner/generated_project';
import { importsOf, resolveImport } from '../support/runner/imports';
import { readSource, repositoryFiles } from '../support/runner/repository';
import { syntaxOf, type SyntaxNode } from '../support/runner/syntax';

const OF_ONE_FILE = new Set(['describe', 'test', 'it', 'expect', 'beforeAll', 'beforeEach', 'afterAll', 'afterEach']);

const shared = repositoryFiles().filter(
  (file) => /^test\/(support|cluster)\/.*\.ts$/.test(file) && !file.endsWith('.test.ts'),
);

/** Names of the framework that the file takes while it is loaded: those of the first test file alone. */
async function takenAtLoad(file: string, text: string): Promise<string[]> {
  const { tree, childrenOf } = await syntaxOf(file, text);
  const found: string[] = [];
  const visit = (node: SyntaxNode): void => {
    if (/Function|^TSType|^TSInterface/.test(node.type)) return;
    if (node.type === 'Identifier' && OF_ONE_FILE.has(node.name as string)) found.push(node.name as string);
    for (const { member, child } of childrenOf(node))
      if (node.computed || !/^(?:property|key)$/.test(member)) visit(child);
  };
  visit(tree);
  return found;
}

test('what is shared takes `describe` and its like when it is called, not when it is loaded', async () => {
  expect(shared.length).toBeGreaterThan(100);
  const taken = await Promise.all(
    shared.map(async (file) => (await takenAtLoad(file, readSource(file))).map((name) => `${file}: ${name}`)),
  );
  expect(taken.flat()).toEqual([]);
  const inText = (text: string): Promise<string[]> => takenAtLoad('file.ts', text);
  expect(await inText('export const many = ready() ? describe : skipped;')).toEqual(['describe']);
  expect(await inText('export const many = (name: string) => describe(name, work); many.test = 1;')).toEqual([]);
});

/** Relative imports of files that are taken of ones that are left out. */
function leftOut(isTaken: (file: string) => boolean, from: RegExp): (readonly [string, string])[] {
  const files = repositoryFiles();
  const known = new Set(files);
  return files
    .filter((file) => from.test(file) && isTaken(file))
    .flatMap((file) => importsOf(file).map(({ target }) => [file, target] as const))
    .filter(([, target]) => target.startsWith('.'))
    .map(([file, target]) => [file, resolveImport(file, target, known)] as const)
    .filter(([, target]) => known.has(target) && !isTaken(target));
}

test('the copy of the project for generators has all that its files import', () => {
  const isCopied = (file: string): boolean => COPIED.some((one) => file === one || file.startsWith(`${one}/`));
  expect(leftOut(isCopied, /\.ts$/)).toEqual([]);
});
