// The parser of TOML, loaded with the first file that needs it.
import { createRequire } from 'node:module';
import type * as OfToml from 'smol-toml' with { 'resolution-mode': 'import' };
import { memoize } from '../memoize';

export type TomlTable = OfToml.TomlTable;

export const toml = memoize(() => createRequire(__filename)('smol-toml') as typeof OfToml);
