// PHP: Composer installs the packages, and PHP-FPM behind nginx serves the folder with index.php.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { isCalled, requireLanguage } from '../host_language';
import { shellWord } from '../language_plan';
import type { BuildHost, DetectLanguage, LanguagePlan, Step } from '../language_plan';
import type { SourceFiles } from '../source_files';
import { CALLS } from '../unbuilt_source';

/** Published folders of frameworks: Laravel and Symfony, Drupal and Yii, CakePHP; last, the source itself. */
const FOLDERS = ['public', 'web', 'webroot', 'public_html', '.'];
const SERVER = '.platform/php-server.sh';
/** What Procfiles written for Heroku start, with the folder as the last word (devcenter.heroku.com). */
const HEROKU = ['heroku-php-nginx', 'heroku-php-apache2'];
const HEROKU_CALL = new RegExp(String.raw`(?:^|[\s/;&])(?:${HEROKU.join('|')})\b`);

export const detectPhp: DetectLanguage = async (files, host) => {
  const folder = await findFolder(files);
  const composer = await files.read('composer.json');
  if (folder === null && !(composer !== null && isCalled(host, CALLS.PHP))) return null;
  const isHeroku = isCalled(host, HEROKU_CALL);
  const isServed = isHeroku || (folder !== null && host.commands.web === undefined);
  const installs = composer !== null && !(await files.has('vendor/autoload.php'));
  requireLanguage(host, {
    name: 'PHP',
    file: composer === null ? path.posix.join(folder ?? '.', 'index.php') : 'composer.json',
    programs: {
      php: 'php-cli',
      ...(isServed && { php_fpm: 'php-fpm', nginx: 'nginx-light' }),
      ...(installs && { composer: 'composer' }),
    },
    isInterpreted: true,
  });
  const { programs } = host.facts;
  const plan: LanguagePlan = {
    kind: 'php',
    summary: [`PHP ${programs.php!.version}`, ...(installs ? ['Composer'] : [])],
    tools: [],
    steps: [
      ...(installs ? [composerStep(await files.has('composer.lock'))] : []),
      ...(isServed ? [serverStep(host, isHeroku)] : []),
    ],
    // A package.json of Symfony UX names packages in vendor/, and assets of Laravel import Ziggy from there.
    isFirst: true,
    site: [],
    prune: null,
    processes: {
      ...(isServed && { web: `sh ${SERVER} ${folder}` }),
      ...((await files.has('artisan')) && {
        worker: 'php artisan queue:work --tries=3',
        scheduler: 'php artisan schedule:work',
      }),
    },
    missing: folder === null ? missingFolder() : null,
    env: {},
    programs: ['vendor/bin', ...(isHeroku ? ['.platform/bin'] : [])],
    reasons: await adviceFor(files, host),
  };
  return plan;
};

async function findFolder(files: SourceFiles): Promise<string | null> {
  for (const folder of FOLDERS) if (await files.has(path.posix.join(folder, 'index.php'))) return folder;
  return null;
}

/** Its cache of packages is below $HOME, which builds of the application share. */
function composerStep(isLocked: boolean): Step {
  const words = ['install', '--no-dev', '--prefer-dist', '--optimize-autoloader', '--no-interaction', '--no-progress'];
  const note = isLocked ? [] : ["echo 'There is no composer.lock, so each build may install other versions.'"];
  return { name: 'composer install', command: [...note, `composer ${words.join(' ')}`].join('\n') };
}

function serverStep({ facts: { programs } }: BuildHost, isHeroku: boolean): Step {
  const script = [
    `nginx=${shellWord(programs.nginx!.path)}`,
    `fpm=${shellWord(programs.php_fpm!.path)}`,
    readFileSync(path.join(__dirname, 'php_server.sh'), 'utf8').trimEnd(),
  ].join('\n');
  // The package of Heroku that brings the second ones is one for development, and Heroku has them without it.
  const names = ['.platform/bin', 'vendor/bin']
    .flatMap((folder) => HEROKU.map((name) => `${folder}/${name}`))
    .join(' ');
  return {
    name: 'PHP-FPM and nginx',
    command: [
      `mkdir -p .platform/bin && printf '%s\\n' ${shellWord(script)} > ${SERVER} || exit 1`,
      ...(isHeroku ? [`mkdir -p vendor/bin && rm -f ${names}`] : []),
      ...(isHeroku ? [`for name in ${names}; do printf '#!/bin/sh\\n. "$PWD/${SERVER}"\\n' > $name; done`] : []),
      ...(isHeroku ? [`chmod +x ${names}`] : []),
    ].join('\n'),
  };
}

async function adviceFor(files: SourceFiles, host: BuildHost): Promise<string[]> {
  if (!(await files.has('artisan')) || host.commands.web !== undefined) return [];
  return [
    'Laravel: set APP_KEY in the variables. `php artisan migrate --force` runs before each new version where it is ' +
      'the release command (run.release_command in the settings).',
  ];
}

function missingFolder(): string {
  return 'The source is a program in PHP without an index.php. Add a Procfile with a line for `web`.';
}
