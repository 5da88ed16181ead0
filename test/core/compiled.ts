// Words of core/ as JavaScript, for processes outside of jest.
import { transformFileSync } from '@swc/core';
import { writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';

/**
 * Writes core/<name>.ts for every name into `directory` itself, as CommonJS. Its processes need NODE_PATH from
 * `nodePath`.
 */
export function compileCore(directory: string, ...names: string[]): void {
  for (const name of names) {
    const { code } = transformFileSync(join(__dirname, `../../core/${name}.ts`), {
      jsc: { parser: { syntax: 'typescript' }, target: 'es2022' },
      module: { type: 'commonjs' },
    });
    writeFileSync(join(directory, `${basename(name)}.js`), code);
  }
}

export const nodePath = resolve(__dirname, '../../node_modules');
