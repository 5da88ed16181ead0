// What builders need of the TOML of a source.
import { toml, type TomlTable } from '../../core/formats/toml';
import { BuildError } from '../builder';

/** TOML of a source. @throws BuildError with the line */
export function parseToml(text: string, file: string): TomlTable {
  const { parse, TomlError } = toml();
  try {
    return parse(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    throw new BuildError(`${file} is not valid TOML: see line ${error.line}.`);
  }
}

/** The table; an empty one for any other value. */
export function table(value: unknown): TomlTable {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date)
    ? (value as TomlTable)
    : {};
}

/** The strings of a list; null for something else. */
export function stringsOf(value: unknown): string[] | null {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : null;
}

/** null for anything but a string. */
export function asText(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
