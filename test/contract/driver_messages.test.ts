// What a driver says may be shown to a customer: one form for all of it.
import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import ts from 'typescript';
import { settings } from '../../core/settings';

const root = path.join(__dirname, '../..');

/** A message as it stands in the sources: `${}` for each value that is known later. */
interface Message {
  where: string;
  text: string;
}

const messages = readdirSync(path.join(root, 'drivers'), { encoding: 'utf8', recursive: true })
  .filter((file) => file.endsWith('.ts'))
  .flatMap((file) => messagesOf(path.join('drivers', file)));

test('messages of drivers are found', () => {
  expect(messages.length).toBeGreaterThan(100);
});

test('each is whole sentences: a capital letter first, one full stop last', () => {
  const wrong = messages.filter(({ text }) => !/^(\p{Lu}|`|\$\{\})/u.test(text) || !/([^.\s]\.|\$\{\})$/u.test(text));
  expect(wrong).toEqual([]);
});

test('none names a setting that does not exist, or a path of the host', () => {
  const known = new Set(Object.keys(settings));
  const wrong = messages.filter(({ text }) => {
    const named = text.match(/\b[A-Z][A-Z0-9]*(_[A-Z0-9]+)+\b/g) ?? [];
    return named.some((name) => !known.has(name)) || /(^|\s)\/(etc|home|proc|root|tmp|usr|var)\b/.test(text);
  });
  expect(wrong).toEqual([]);
});

/** The messages of all `new DriverError(reason, message)` of a file whose message is written where it is thrown. */
function messagesOf(file: string): Message[] {
  const source = ts.createSourceFile(file, readFileSync(path.join(root, file), 'utf8'), ts.ScriptTarget.Latest, true);
  const found: Message[] = [];
  const visit = (node: ts.Node): void => {
    const message = ts.isNewExpression(node) && node.expression.getText() === 'DriverError' && node.arguments?.[1];
    if (message) {
      const { line } = source.getLineAndCharacterOfPosition(message.getStart());
      for (const text of textsOf(message)) found.push({ where: `${file}:${line + 1}`, text });
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

function textsOf(node: ts.Expression): string[] {
  if (ts.isStringLiteralLike(node)) return [node.text];
  if (ts.isTemplateExpression(node))
    return [node.head.text + node.templateSpans.map(({ literal }) => `\${}${literal.text}`).join('')];
  if (ts.isConditionalExpression(node)) return [...textsOf(node.whenTrue), ...textsOf(node.whenFalse)];
  if (ts.isParenthesizedExpression(node)) return textsOf(node.expression);
  return [];
}
