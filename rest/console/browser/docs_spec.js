// The console's copy of the document: omits the parameters that the user enters once for all operations.
'use strict';

/** @param project id entered in the bar, or '' */
function consoleSpec(document, origin, project) {
  const spec = structuredClone({ ...document, components: usedComponents(document) });
  // The service answers at other addresses than its base address too (localhost, a tunnel): the page calls the one that
  // it came from.
  spec.servers = [{ url: origin }];
  for (const [path, item] of Object.entries(spec.paths)) {
    for (const operation of Object.values(item)) {
      operation.security = [];
      operation.description = '';
      operation.parameters = (operation.parameters || []).filter(
        (parameter) => !(parameter.$ref || '').endsWith('/X-Svc-Project'),
      );
      for (const parameter of operation.parameters) prefill(parameter, path, project);
    }
  }
  return spec;
}

// An example id names nothing here, so the field is left empty; the project is known.
function prefill(parameter, path, project) {
  delete parameter.example;
  const namesProject = parameter.in === 'path' && parameter.name === 'id' && /^\/v2\/projects\/\{id\}/.test(path);
  if (namesProject && project) parameter.example = project;
}

// Swagger UI goes through all components, however few of them an operation refers to.
function usedComponents({ paths, components }) {
  const used = {};
  const collect = (value) => {
    for (const [, kind, name] of JSON.stringify(value).matchAll(/"#\/components\/(\w+)\/([^"]+)"/g)) {
      if (used[kind]?.[name]) continue;
      (used[kind] ??= {})[name] = components[kind][name];
      collect(components[kind][name]);
    }
  };
  collect(paths);
  return used;
}
