// The console's own copy of the document: what is entered once is not asked for at every operation.
'use strict';

/** @param project id entered in the bar, or '' */
function consoleSpec(document, origin, project) {
  const spec = structuredClone(document);
  // The service answers at other addresses than its base address too (localhost, a tunnel); the page calls where it came from.
  spec.servers = [{ url: origin }];
  for (const [path, item] of Object.entries(spec.paths)) {
    for (const operation of Object.values(item)) {
      operation.security = [];
      operation.description += `\n\nScope: \`${operation['x-required-scope']}\`${samplesOf(operation)}`;
      operation.parameters = (operation.parameters || []).filter(
        (parameter) => !(parameter.$ref || '').endsWith('/X-Svc-Project'),
      );
      for (const parameter of operation.parameters) prefill(parameter, path, project);
    }
  }
  return spec;
}

// Fenced blocks, which the page shows below the description.
function samplesOf(operation) {
  const samples = operation['x-codeSamples'] || [];
  return samples.map(({ label, source }) => `\n\n**${label}**\n\n\`\`\`\n${source}\n\`\`\``).join('');
}

// An example id names nothing here, so the field is left empty; the project is known.
function prefill(parameter, path, project) {
  delete parameter.example;
  const namesProject = parameter.in === 'path' && parameter.name === 'id' && /^\/v2\/projects\/\{id\}/.test(path);
  if (namesProject && project) parameter.example = project;
}
