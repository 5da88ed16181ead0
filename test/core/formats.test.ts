import { formats, isFormat, type FormatName } from '../../core/formats/formats';
import { formatSchema } from '../../rest/openapi/scalar_schemas';
import { cases } from '../support/contract/format_cases';

describe.each(Object.entries(cases) as [FormatName, [string, string | null][]][])('%s', (name, rows) => {
  test.each(rows)('%j becomes %j', (text, value) => {
    expect(formats[name](text)).toEqual(value === null ? null : { value });
  });

  test('the normal form is its own normal form', () => {
    for (const [, value] of rows) if (value !== null) expect(formats[name](value)).toEqual({ value });
  });

  test('control characters and broken characters are refused everywhere', () => {
    const good = rows.find(([, value]) => value !== null)?.[0] ?? '';
    for (const bad of ['\0', '\n', '\r', '\t', '\u001b', '\u007f', '\u0085', '\u2028', '\u2029', '\ud800', '\udc00']) {
      for (const at of [0, Math.ceil(good.length / 2), good.length])
        expect(formats[name](good.slice(0, at) + bad + good.slice(at))).toBeNull();
    }
  });

  const { pattern } = formatSchema(name).schema;
  // Dates and e-mail addresses are published by the name of their format.
  if (pattern !== undefined)
    test('its published pattern takes what it takes, and no control character', () => {
      const published = new RegExp(pattern, 'u');
      const good = rows.flatMap(([text, value]) => (value === null ? [] : [text]));
      expect(good.filter((text) => !published.test(text))).toEqual([]);
      const [text = ''] = good;
      for (const bad of ['\0', '\n', '\r', '\t', '\u007f', '\u0080', '\u0085', '\u009f', '\u2028', '\u2029'])
        for (const at of [0, Math.ceil(text.length / 2), text.length])
          expect(published.test(text.slice(0, at) + bad + text.slice(at))).toBe(false);
    });

  // A pattern that backtracks would take minutes, not the milliseconds that all of this takes.
  test('hostile lengths cost little', () => {
    const begun = process.cpuUsage().user;
    for (const part of ['a', '-', '.', '_', '/', 'a-', 'a.', ':', '@', '1', '*.', 'é'])
      formats[name](part.repeat(50_000));
    expect(process.cpuUsage().user - begun).toBeLessThan(1_000_000);
  });
});

test('names of formats are known exactly', () => {
  expect(Object.keys(formats).every(isFormat)).toBe(true);
  expect(isFormat('toString')).toBe(false);
});
