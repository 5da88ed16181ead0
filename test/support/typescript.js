// Lets a child process of a test run the sources: node --require test/support/typescript.js -e "require('./server/embedded')".
const { transformFileSync } = require('@swc/core');

require.extensions['.ts'] = (module, file) => {
  const { code } = transformFileSync(file, { jsc: { parser: { syntax: 'typescript' }, target: 'es2022' }, module: { type: 'commonjs' }, sourceMaps: 'inline' });
  module._compile(code, file);
};
