// Takes from GitHub's OpenAPI document what the tests of the client need:
//   npm pack @octokit/openapi && tar xzf octokit-openapi-*.tgz package/generated/api.github.com.json
//   node tools/scripts/github_openapi.mjs package/generated/api.github.com.json > test/support/git/github_openapi.json
// Descriptions and examples are omitted; parameters, bodies and successful responses are unmodified.
import { readFileSync } from 'node:fs';

const OPERATIONS = [
  ['/user', 'get'],
  ['/user/repos', 'get'],
  ['/repos/{owner}/{repo}', 'get'],
  ['/repos/{owner}/{repo}/branches', 'get'],
  ['/repos/{owner}/{repo}/pulls', 'get'],
  ['/repos/{owner}/{repo}/pulls/{pull_number}', 'get'],
  ['/repos/{owner}/{repo}/commits/{ref}/check-runs', 'get'],
  ['/repos/{owner}/{repo}/commits/{ref}/status', 'get'],
  ['/repos/{owner}/{repo}/statuses/{sha}', 'post'],
  ['/repos/{owner}/{repo}/issues/{issue_number}/comments', 'post'],
  ['/repos/{owner}/{repo}/issues/comments/{comment_id}', 'patch'],
  ['/repos/{owner}/{repo}/hooks', 'get'],
  ['/repos/{owner}/{repo}/hooks', 'post'],
  ['/repos/{owner}/{repo}/hooks/{hook_id}', 'patch'],
  ['/repos/{owner}/{repo}/hooks/{hook_id}', 'delete'],
];
const PROSE = new Set(['description', 'summary', 'example', 'examples', 'externalDocs', 'tags', 'title', 'deprecated']);

const [file] = process.argv.slice(2);
const { openapi, info, paths, components } = JSON.parse(readFileSync(file, 'utf8'));
const kept = {};
const queue = [];

/** @param isNamed the members are names of fields, not keywords */
function plain(value, isNamed = false) {
  if (Array.isArray(value)) return value.map((one) => plain(one));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([name]) => isNamed || !(PROSE.has(name) || name.startsWith('x-')));
  const reference = entries.find(([name, to]) => name === '$ref' && typeof to === 'string');
  if (reference) queue.push(reference[1]);
  return Object.fromEntries(
    entries.map(([name, one]) => [name, plain(one, !isNamed && (name === 'properties' || name === 'headers'))]),
  );
}

const operations = {};
for (const [path, method] of OPERATIONS) {
  const { operationId, parameters = [], requestBody, responses } = paths[path][method];
  const successful = Object.entries(responses).filter(([status]) => status.startsWith('2'));
  operations[path] = {
    ...operations[path],
    [method]: plain({ operationId, parameters, requestBody, responses: Object.fromEntries(successful) }),
  };
}
for (const reference of queue) {
  const [, , kind, name] = reference.split('/');
  if (kept[kind]?.[name]) continue;
  kept[kind] = { ...kept[kind], [name]: {} };
  kept[kind][name] = plain(components[kind][name]);
}
const { version, license } = info;
const extract = { openapi, info: { title: 'Extract of the GitHub v3 REST API', version, license } };
process.stdout.write(`${JSON.stringify({ ...extract, paths: operations, components: kept }, null, 1)}\n`);
