// What V8 made of the sources is kept beside them: a start that finds it compiles nothing, which is a fifth of its
// work. Node.js takes what fits the source and its own version, and does without where the folder cannot be written.
import * as loading from 'node:module';
import path from 'node:path';

// Node 20 has no such function.
const { enableCompileCache } = loading as { enableCompileCache?: (folder: string) => unknown };
if (__filename.endsWith('.js')) enableCompileCache?.(path.resolve(__dirname, '../../.cache/compiled'));
