// Documents that are kept for queries that come again: within a bound, whatever clients send.
import { parse } from 'graphql';
import { keptDocuments } from '../../server/graphql/kept_documents';

const TEXT = '{ getMe { kind } }';

test('the sum of the texts is bounded, and what was used last stays', async () => {
  const store = keptDocuments(TEXT.length * 3);
  for (const key of ['a', 'b', 'c']) await store.set(key, parse(TEXT));
  expect(await store.get('a')).toBeDefined();
  await store.set('d', parse(TEXT));
  const found = await Promise.all(['a', 'b', 'c', 'd'].map(async (key) => (await store.get(key)) !== undefined));
  expect(found).toEqual([true, false, true, true]);
  expect([await store.delete('d'), await store.delete('d'), await store.get('d')]).toEqual([true, false, undefined]);
});

test('a text that is longer than the bound is not kept, nor does one that comes again count twice', async () => {
  const store = keptDocuments(TEXT.length * 2);
  await store.set('long', parse(`${TEXT} # ${'x'.repeat(TEXT.length)}`));
  expect(await store.get('long')).toBeUndefined();
  await store.set('a', parse(TEXT));
  for (let time = 0; time < 5; time += 1) await store.set('b', parse(TEXT));
  expect(await store.get('a')).toBeDefined();
});
