// The reference works without this script. It adds: key and project, stored in this browser; a filter; links that open
// their target; and Swagger UI for the operation that the user tries out.
'use strict';

const STORE = 'platform-api-console';
const ASSETS = document.currentScript.dataset.assets;
const field = (id) => document.getElementById(id);
const access = JSON.parse(localStorage.getItem(STORE) || '{"key":"","project":""}');
const operations = [...document.querySelectorAll('details.operation')];
const tried = new Set();

field('key').value = access.key;
field('project').value = access.project;

field('access').addEventListener('submit', (event) => {
  event.preventDefault();
  access.key = field('key').value.trim();
  access.project = field('project').value.trim();
  localStorage.setItem(STORE, JSON.stringify(access));
  for (const block of tried) show(block);
  note('Kept in this browser.');
});

field('forget').addEventListener('click', () => {
  access.key = access.project = field('key').value = field('project').value = '';
  localStorage.removeItem(STORE);
  for (const block of tried) show(block);
  note('Forgotten.');
});

field('filter').addEventListener('input', ({ target }) => {
  const words = target.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const block of operations) {
    const text = `${block.id} ${block.firstElementChild.textContent}`.toLowerCase();
    block.hidden = !words.every((word) => text.includes(word));
  }
  for (const section of document.querySelectorAll('main > section'))
    section.hidden = section.id === 'schemas' ? words.length > 0 : !section.querySelector('details:not([hidden])');
});

field('operations').addEventListener('click', ({ target }) => {
  if (!target.matches('button.try')) return;
  const block = target.closest('details');
  target.disabled = true;
  target.textContent = 'Loading …';
  show(block).then(
    () => target.remove(),
    (error) => {
      target.disabled = false;
      target.textContent = `Try it (${error.message})`;
    },
  );
});

addEventListener('hashchange', openTarget);
openTarget();

/** `#createVolume`, a group or a schema; `#/Volumes/createVolume` is how addresses looked before. */
function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)).replace(/^\/.*\//, ''));
  if (!target) return;
  if (target.matches('details')) target.open = true;
  target.scrollIntoView();
}

async function show(block) {
  const [published] = await Promise.all([loadDocument(), loadSwaggerUi()]);
  tried.add(block);
  const { path, method } = block.dataset;
  const { paths, tags, ...rest } = published;
  const operation = paths[path][method];
  const console = block.querySelector('.console');
  SwaggerUIBundle({
    domNode: console,
    spec: consoleSpec(
      { ...rest, paths: { [path]: { [method]: operation } }, tags: [] },
      location.origin,
      access.project,
    ),
    presets: [SwaggerUIBundle.presets.apis],
    layout: 'BaseLayout',
    docExpansion: 'full',
    defaultModelsExpandDepth: -1,
    displayRequestDuration: true,
    tryItOutEnabled: true,
    validatorUrl: null,
    requestInterceptor: withAccess,
  });
}

let loadedDocument;
function loadDocument() {
  loadedDocument ??= fetch('/v2/openapi.json').then((answer) => answer.json());
  return loadedDocument;
}

let loadedSwaggerUi;
function loadSwaggerUi() {
  loadedSwaggerUi ??= new Promise((resolve, reject) => {
    const style = document.createElement('link');
    style.rel = 'stylesheet';
    style.href = `${ASSETS}/swagger-ui.css`;
    const script = document.createElement('script');
    script.src = `${ASSETS}/swagger-ui-bundle.js`;
    script.onload = resolve;
    script.onerror = () => ((loadedSwaggerUi = undefined), reject(new Error('the console could not be loaded')));
    document.head.append(style, script);
  });
  return loadedSwaggerUi;
}

function withAccess(request) {
  if (access.key) request.headers.Authorization = `Bearer ${access.key}`;
  if (access.project) request.headers['X-Svc-Project'] = access.project;
  return request;
}

function note(text) {
  field('note').textContent = text;
}
