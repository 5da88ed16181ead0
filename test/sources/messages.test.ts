// What drivers and jobs say may be shown to a customer: one form for all of it.
import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { settings } from '../../core/settings';
import { syntaxOf, type SyntaxNode } from '../support/runner/syntax';

const root = path.join(__dirname, '../..');

/** A message as it stands in the sources: `${…}` for each value that is known later. */
interface Message {
  where: string;
  text: string;
}

/** Properties of rows, outcomes and lines that people read. */
const PROPERTIES = new Set(['status_reason', 'reason', 'message', 'waiting', 'detail']);
/** Functions whose first or second argument people read. */
const CALLS: Record<string, number> = { DriverError: 1, SourceError: 1, StepFailed: 0, failed: 0 };

let messages: Message[] = [];

beforeAll(async () => {
  const files = ['engines', 'drivers', 'jobs', 'core/outbound', 'core/process'].flatMap((folder) =>
    readdirSync(path.join(root, folder), { encoding: 'utf8', recursive: true })
      .filter((file) => file.endsWith('.ts'))
      .map((file) => path.join(folder, file)),
  );
  messages = (await Promise.all(files.map(messagesOf))).flat();
});

test('messages of drivers and jobs are found', () => {
  const inFolder = (folder: string): number => messages.filter(({ where }) => where.startsWith(folder)).length;
  expect(inFolder('drivers/')).toBeGreaterThan(150);
  expect(inFolder('jobs/')).toBeGreaterThan(30);
});

test('each is whole sentences: a capital letter first, one full stop last', () => {
  const wrong = messages.filter(
    ({ text }) => !/^(\p{Lu}|`|\$\{…\}|\$\{\w+\})/u.test(text) || !/([^.\s]\.|\})$/u.test(text) || /\.\s*\./.test(text),
  );
  expect(wrong).toEqual([]);
});

test('none appends a full stop to a text that has one', () => {
  const wrong = messages.filter(({ text }) => /\$\{(?:reason|message|detail|diff|error)\w*\}\./i.test(text));
  expect(wrong).toEqual([]);
});

test('none names a setting that does not exist, or a path of the host', () => {
  const known = new Set(Object.keys(settings));
  const wrong = messages.filter(({ text }) => {
    const named = text.match(/\b[A-Z][A-Z0-9]*(_[A-Z0-9]+)+\b/g) ?? [];
    return named.some((name) => !known.has(name)) || /(^|\s|`)\/(etc|home|proc|root|run|srv|tmp|usr|var)\b/.test(text);
  });
  expect(wrong).toEqual([]);
});

/** The messages of a file that are written where they are thrown or stored. */
async function messagesOf(file: string): Promise<Message[]> {
  const source = readFileSync(path.join(root, file), 'utf8');
  const { tree, childrenOf } = await syntaxOf(file, source);
  const found: Message[] = [];
  const visit = (node: SyntaxNode): void => {
    const message = messageIn(node, source);
    if (message) {
      const line = source.slice(0, message.start).split('\n').length;
      for (const text of textsOf(message, source)) if (isProse(text)) found.push({ where: `${file}:${line}`, text });
    }
    for (const { child } of childrenOf(node)) visit(child);
  };
  visit(tree);
  return found;
}

function messageIn(node: SyntaxNode, source: string): SyntaxNode | undefined {
  const named = (node.key ?? node.callee) as SyntaxNode | undefined;
  if (!named) return undefined;
  const name = source.slice(named.start, named.end);
  if (node.type === 'Property') return PROPERTIES.has(name) ? (node.value as SyntaxNode) : undefined;
  return (node.arguments as SyntaxNode[] | undefined)?.[CALLS[name] ?? -1];
}

// Codes of one word are no sentences.
function isProse(text: string): boolean {
  return /\s/.test(text);
}

function textsOf(node: SyntaxNode, source: string): string[] {
  const texts = (member: string): string[] => textsOf(node[member] as SyntaxNode, source);
  switch (node.type) {
    case 'Literal':
      return typeof node.value === 'string' ? [node.value] : [];
    case 'TemplateLiteral':
      return [templateText(node, source)];
    case 'ConditionalExpression':
      return [...texts('consequent'), ...texts('alternate')];
    case 'ParenthesizedExpression':
      return texts('expression');
    case 'LogicalExpression':
      return [...texts('left'), ...texts('right')];
    case 'BinaryExpression':
      if (node.operator !== '+') return [...texts('left'), ...texts('right')];
      return texts('left').flatMap((begin) => texts('right').map((end) => begin + end));
    default:
      return [];
  }
}

function templateText(node: SyntaxNode, source: string): string {
  const quasis = node.quasis as { value: { cooked: string } }[];
  const names = (node.expressions as SyntaxNode[]).map(({ start, end }) => `\${${nameOf(source.slice(start, end))}}`);
  return quasis.map(({ value }, i) => value.cooked + (names[i] ?? '')).join('');
}

/** Of a value in a template: its last word, which says what it is. */
function nameOf(expression: string): string {
  return /(\w+)(?:\([^()]*\))?$/.exec(expression)?.[1] ?? '…';
}
