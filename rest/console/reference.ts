// The reference of all operations at /v2/docs, rendered on the server from the OpenAPI document: it shows at once and
// needs no script. The code to run requests is loaded when the user presses "Try it" (browser/docs.js).
import type { OpenApiDocument, OperationObject, Parameter, Ref, Response, Schema } from '../openapi/document';
import { escapeHtml } from '../../core/protocols/html';
import { inline, markdown } from './markdown';

/** Name of the assets' folder -> the page. */
export function referencePage(document: OpenApiDocument, template: string): string {
  const groups = groupsOf(document);
  return template
    .replace('{{info}}', () => infoHtml(document))
    .replace('{{groups}}', () => groups.map(navigation).join(''))
    .replace('{{operations}}', () => groups.map((group) => groupHtml(document, group)).join(''))
    .replace('{{schemas}}', () => schemasHtml(document));
}

interface Listed {
  method: string;
  path: string;
  operation: OperationObject;
}

interface Group {
  name: string;
  description: string;
  operations: Listed[];
}

function groupsOf({ tags, paths }: OpenApiDocument): Group[] {
  const all = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ method, path, operation: operation as OperationObject })),
  );
  return tags.map(({ name, description }) => ({
    name,
    description,
    operations: all.filter(({ operation }) => operation.tags[0] === name),
  }));
}

function infoHtml({ info }: OpenApiDocument): string {
  return `<h1>${escapeHtml(info.title)}</h1><details class="about"><summary>How to use the API</summary>${markdown(
    info.description,
  )}</details>`;
}

const anchor = (name: string): string => `group-${name.toLowerCase().replace(/\W+/g, '-')}`;

function navigation({ name, operations }: Group): string {
  return `<li><a href="#${anchor(name)}">${escapeHtml(name)}</a> <small>${operations.length}</small>`;
}

function groupHtml(document: OpenApiDocument, { name, description, operations }: Group): string {
  const rows = operations.map((listed) => operationHtml(document, listed)).join('');
  return `<section id="${anchor(name)}"><h2>${escapeHtml(name)}</h2><p>${inline(description)}</p>${rows}</section>`;
}

function operationHtml(document: OpenApiDocument, { method, path, operation }: Listed): string {
  const id = operation.operationId;
  const body = operation.requestBody?.content['application/json'];
  return [
    `<details class="operation" id="${id}" data-path="${escapeHtml(path)}" data-method="${method}">`,
    `<summary><span class="method ${method}">${method.toUpperCase()}</span> `,
    `<code>${escapeHtml(path).replaceAll('/', '/<wbr>')}</code> `,
    `<span>${escapeHtml(operation.summary)}</span></summary>`,
    '<div class="body">',
    markdown(operation.description),
    parametersHtml(document, operation),
    body ? `<h4>Body</h4>${schemaTable(document, body.schema)}` : '',
    `<h4>Responses</h4>${responsesHtml(document, operation)}`,
    samplesHtml(operation),
    `<button type="button" class="try">Try it</button><div class="console"></div>`,
    `</div></details>`,
  ].join('');
}

function parametersHtml(document: OpenApiDocument, { parameters = [] }: OperationObject): string {
  const rows = parameters.map((given) => resolve<Parameter>(document, given));
  if (!rows.length) return '';
  const cells = rows.map(({ name, in: place, required, description, schema }) =>
    row(name, `${place}, ${typeOf(document, schema)}`, required, description, schema),
  );
  return `<h4>Parameters</h4>${table(cells)}`;
}

function table(rows: string[]): string {
  return `<div class="scroll"><table><tbody>${rows.join('')}</tbody></table></div>`;
}

function row(name: string, type: string, required: boolean, description = '', schema: Schema = {}): string {
  const bounds = boundsOf(schema);
  const mark = required ? ' <b class="required">required</b>' : '';
  return `<tr><th scope="row"><code>${escapeHtml(name)}</code>${mark}<td><small>${type}</small> ${inline(description)}${
    bounds && ` <small>${escapeHtml(bounds)}</small>`
  }`;
}

const DEPTH_MAX = 3;

/** The fields of an object; fields of nested objects have dotted names. */
function schemaTable(document: OpenApiDocument, schema: Schema): string {
  const rows = fieldRows(document, schema, '', 0);
  return rows.length ? table(rows) : `<p>${typeOf(document, schema)}</p>`;
}

function fieldRows(document: OpenApiDocument, given: Schema, above: string, depth: number): string[] {
  const schema = objectOf(document, given);
  return Object.entries(schema?.properties ?? {}).flatMap(([name, field]) => {
    const required = schema?.required?.includes(name) ?? false;
    const own = row(above + name, typeOf(document, field), required, field.description, field);
    const inner = depth < DEPTH_MAX ? fieldRows(document, field, `${above}${name}.`, depth + 1) : [];
    return [own, ...inner];
  });
}

/** The object that a schema is, directly or as one of several; undefined for anything else. */
function objectOf(document: OpenApiDocument, schema: Schema): Schema | undefined {
  const found = resolve<Schema>(document, schema);
  if (found.properties) return found;
  const parts = [...(found.anyOf ?? []), ...(found.allOf ?? [])].map((part) => resolve<Schema>(document, part));
  return parts.find((part) => part.properties);
}

function typeOf(document: OpenApiDocument, schema: Schema): string {
  if (schema.$ref) {
    const name = schema.$ref.slice(schema.$ref.lastIndexOf('/') + 1);
    return `<a href="#schema-${name}">${name}</a>`;
  }
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices) return choices.map((part) => typeOf(document, part)).join(' or ');
  if (schema.allOf) return schema.allOf.map((part) => typeOf(document, part)).join(' and ');
  if (schema.items) return `list of ${typeOf(document, schema.items)}`;
  const type = [schema.type ?? 'any'].flat().join(' or ');
  return schema.format ? `${type} (${escapeHtml(schema.format)})` : type;
}

function boundsOf(schema: Schema): string {
  const parts: string[] = [];
  const between = (low: number | undefined, high: number | undefined, unit: string): void => {
    if (low !== undefined && high !== undefined) parts.push(`${low} to ${high}${unit}`);
    else if (low !== undefined) parts.push(`at least ${low}${unit}`);
    else if (high !== undefined) parts.push(`at most ${high}${unit}`);
  };
  if (schema.enum) parts.push(`one of ${schema.enum.join(', ')}`);
  between(schema.minimum, schema.maximum, '');
  between(schema.minLength, schema.maxLength, ' characters');
  between(schema.minItems, schema.maxItems, ' entries');
  if (schema.default !== undefined) parts.push(`default ${JSON.stringify(schema.default)}`);
  return parts.length ? `${parts.join('; ')}.` : '';
}

function responsesHtml(document: OpenApiDocument, { responses }: OperationObject): string {
  const rows = Object.entries(responses).map(([status, given]) => {
    const { description, content } = resolve<Response>(document, given);
    const schema = content?.['application/json']?.schema;
    const type = schema ? ` <small>${typeOf(document, schema)}</small>` : '';
    return `<tr><th scope="row"><code>${status}</code><td>${markdown(description)}${type}`;
  });
  return table(rows);
}

/** One radio button for each language: it works by keyboard and without a script. */
function samplesHtml({ operationId, 'x-codeSamples': samples }: OperationObject): string {
  const tabs = samples.map(({ label, source }, index) => {
    const id = `${operationId}-${index}`;
    const button = `<input type="radio" name="${operationId}-sample" id="${id}"${index ? '' : ' checked'}>`;
    const text = `<pre tabindex="0"><code>${escapeHtml(source)}</code></pre>`;
    return `${button}<label for="${id}">${escapeHtml(label)}</label>${text}`;
  });
  return `<fieldset class="samples"><legend>Samples</legend>${tabs.join('')}</fieldset>`;
}

function schemasHtml(document: OpenApiDocument): string {
  return Object.entries(document.components.schemas ?? {})
    .map(([name, given]) => {
      const schema = given as Schema;
      const names = schema.enum?.map((value) => `<code>${escapeHtml(String(value))}</code>`);
      const values = names ? `<p>${names.join(' ')}</p>` : '';
      return `<details id="schema-${name}"><summary><code>${name}</code></summary><div class="body">${markdown(
        schema.description ?? '',
      )}${values || fieldsOf(document, schema)}</div></details>`;
    })
    .join('');
}

function fieldsOf(document: OpenApiDocument, schema: Schema): string {
  const object = objectOf(document, schema);
  const rows = Object.entries(object?.properties ?? {}).map(([name, field]) =>
    row(name, typeOf(document, field), object?.required?.includes(name) ?? false, field.description, field),
  );
  return rows.length ? table(rows) : '';
}

function resolve<Found>(document: OpenApiDocument, given: Found | Ref): Found {
  const { $ref } = given as Ref;
  if (!$ref) return given as Found;
  const found = $ref
    .slice(2)
    .split('/')
    .reduce<unknown>((value, name) => (value as Record<string, unknown>)[name], document);
  return found as Found;
}
