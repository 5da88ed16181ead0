// What drivers and jobs say may be shown to a customer: one form for all of it.
import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import ts from 'typescript';
import { settings } from '../../core/settings';

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

const messages = ['engines', 'drivers', 'jobs', 'core/outbound', 'core/process'].flatMap((folder) =>
  readdirSync(path.join(root, folder), { encoding: 'utf8', recursive: true })
    .filter((file) => file.endsWith('.ts'))
    .flatMap((file) => messagesOf(path.join(folder, file))),
);

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
function messagesOf(file: string): Message[] {
  const source = ts.createSourceFile(file, readFileSync(path.join(root, file), 'utf8'), ts.ScriptTarget.Latest, true);
  const found: Message[] = [];
  const visit = (node: ts.Node): void => {
    const message = messageIn(node);
    if (message) {
      const { line } = source.getLineAndCharacterOfPosition(message.getStart());
      for (const text of textsOf(message)) if (isProse(text)) found.push({ where: `${file}:${line + 1}`, text });
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

function messageIn(node: ts.Node): ts.Expression | undefined {
  if (ts.isPropertyAssignment(node) && PROPERTIES.has(node.name.getText())) return node.initializer;
  if (!ts.isNewExpression(node) && !ts.isCallExpression(node)) return undefined;
  const position = CALLS[node.expression.getText()];
  return position === undefined ? undefined : node.arguments?.[position];
}

// Codes of one word are no sentences.
function isProse(text: string): boolean {
  return /\s/.test(text);
}

function textsOf(node: ts.Expression): string[] {
  if (ts.isStringLiteralLike(node)) return [node.text];
  if (ts.isTemplateExpression(node))
    return [node.head.text + node.templateSpans.map((span) => `\${${nameOf(span)}}${span.literal.text}`).join('')];
  if (ts.isConditionalExpression(node)) return [...textsOf(node.whenTrue), ...textsOf(node.whenFalse)];
  if (ts.isParenthesizedExpression(node)) return textsOf(node.expression);
  if (ts.isBinaryExpression(node)) return joined(textsOf(node.left), textsOf(node.right), node.operatorToken.kind);
  return [];
}

function joined(left: string[], right: string[], operator: ts.SyntaxKind): string[] {
  if (operator !== ts.SyntaxKind.PlusToken) return [...left, ...right];
  return left.length && right.length ? left.flatMap((begin) => right.map((end) => begin + end)) : [];
}

/** Of a value in a template: its last word, which says what it is. */
function nameOf({ expression }: ts.TemplateSpan): string {
  return /(\w+)(?:\([^()]*\))?$/.exec(expression.getText())?.[1] ?? '…';
}
