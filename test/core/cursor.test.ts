import { createSecretKey, randomBytes } from 'node:crypto';
import { cursorCodec, hashFilters, type Cursor } from '../../core/cursor';
import { mintId } from '../../core/ids';

const codec = cursorCodec(createSecretKey(randomBytes(32)));
const filters = hashFilters({ status: 'available' });
const expected = { sort: '-created_at', filters };
const BASE64URL = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

function cursorWith(key: Cursor['key']): Cursor {
  return { ...expected, key, id: mintId('vol') };
}

test.each([['text'], [''], ['schön "zitiert" \u{1f600}'], [42], [-0.5], [2 ** 53 - 1], [null]])(
  'key %j survives',
  (key) => {
    const cursor = cursorWith(key);
    const text = codec.encode(cursor);
    expect(text).toMatch(/^[\w-]+$/);
    expect(codec.decode(text, expected)).toEqual(cursor);
  },
);

test('an alteration of any character is refused', () => {
  const text = codec.encode(cursorWith('2026-01-31T09:30:00.000Z'));
  for (let i = 0; i < text.length; i += 1) {
    for (const other of [...BASE64URL, '+', '/', '=', ' ', '\n', 'é', '\0']) {
      if (other === text[i]) continue;
      const altered = text.slice(0, i) + other + text.slice(i + 1);
      expect(() => codec.decode(altered, expected)).toThrow(expect.objectContaining({ code: 'invalid_cursor' }));
    }
  }
});

test.each([
  ['cut', (text: string) => text.slice(0, -1)],
  ['cut to nothing', () => ''],
  ['cut to the seal', (text: string) => text.slice(0, 22)],
  ['prolonged', (text: string) => `${text}A`],
  ['padded', (text: string) => `${text}=`],
  ['with a space in front', (text: string) => ` ${text}`],
  ['far too long', (text: string) => text.repeat(1000)],
])('a cursor %s is refused', (_, change) => {
  const altered = change(codec.encode(cursorWith(1)));
  expect(() => codec.decode(altered, expected)).toThrow(
    expect.objectContaining({ code: 'invalid_cursor', status: 400 }),
  );
});

test('a cursor of another sort, other filters or another key is refused', () => {
  const text = codec.encode(cursorWith(1));
  const refused = expect.objectContaining({ code: 'invalid_cursor' });
  expect(() => codec.decode(text, { ...expected, sort: 'name' })).toThrow(refused);
  expect(() => codec.decode(text, { ...expected, filters: hashFilters({}) })).toThrow(refused);
  expect(() => cursorCodec(createSecretKey(randomBytes(32))).decode(text, expected)).toThrow(refused);
});

test('the hash of filters depends on names and values, not on their order', () => {
  expect(hashFilters({ a: 1, b: 'x' })).toBe(hashFilters({ b: 'x', a: 1 }));
  expect(hashFilters({ a: 1, b: undefined })).toBe(hashFilters({ a: 1 }));
  const different = [
    {},
    { a: 1 },
    { a: '1' },
    { a: null },
    { a: [1] },
    { b: 1 },
    { a: 'b', b: 'a' },
    { a: 'a', b: 'b' },
    { ab: '' },
  ];
  expect(new Set(different.map(hashFilters)).size).toBe(different.length);
});

describe('a position', () => {
  const list = hashFilters({ list: 'listVolumes', id: 'prj_1' });

  test.each(['1:1:', `5:9:${'6,'.repeat(2_500)}7|5:9:|5.1`])('comes back in its list as it was (%#)', (position) => {
    expect(codec.reveal(list, codec.conceal(list, position))).toBe(position);
  });

  test('is refused in another list, and cursors and positions are not one another', () => {
    const refused = expect.objectContaining({ code: 'invalid_cursor' }) as Error;
    const other = hashFilters({ list: 'listVolumes', id: 'prj_2' });
    expect(() => codec.reveal(other, codec.conceal(list, '1:1:'))).toThrow(refused);
    expect(() => codec.reveal('', codec.conceal(list, '1:1:'))).toThrow(refused);
    expect(() => codec.reveal(list, codec.encode(cursorWith(1)))).toThrow(refused);
    expect(() => codec.decode(codec.conceal(list, '1:1:'), expected)).toThrow(refused);
  });
});
