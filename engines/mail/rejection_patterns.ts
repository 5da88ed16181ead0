// Patterns for the answers of mail servers, in lower case. test/email has the answers that they were made from.

function anyOf(...patterns: string[]): RegExp {
  return new RegExp(patterns.join('|'), 'u');
}

/** Names of lists of hosts with a bad reputation, also in addresses of pages. */
export const REPUTATION_LIST = anyOf(
  'spamhaus|spamcop|sorbs|barracudacentral|senderbase|cloudmark|surbl|uribl|invaluement|spamrl|hostkarma|uceprotect',
  '\\bdns-?bls?\\b|\\brbls?\\b|\\bbl\\d\\d\\b|sender\\.office\\.com|postmaster\\.google',
);

/** The message, its sender or this host is refused. */
export const NOT_THE_MAILBOX = anyOf(
  '(?:black|block|deny|ban)[ -]?list|\\bblock(?:ed|ing)?\\b(?! due to inactivity)|\\bbann?(?:ed|ing)?\\b|reputation',
  'spam|unsolicited|unwanted|junk|bulk|phish|virus|malware|infected|attachment|suspicious|suspected|spoof|forge',
  'content|polic(?:y|ies)|administrative prohibition|prohibit|not permitted|not allowed|unauthori[sz]ed|threat',
  'not authori[sz]ed|(?:access|permission|mail|message|request) denied|denied by|restrict|securit|complain|abus',
  '\\brelay|rcpthosts|your access|messages? from|listed (?:at|in|on)\\b',
  '\\bspf\\b|\\bdkim\\b|\\bdmarc\\b|authenticat|\\bauth ?required|\\bsenders?\\b|mail ?from\\b',
  'verification failed|callout|call-?back|reverse dns|\\br?dns\\b|\\bptr\\b|\\bhelo\\b|\\behlo\\b|\\bgr[ea]y-?list',
  '(?:client|sending|source|your) (?:host|ip|address|(?:mail ?)?server|domain|mta|network)|\\bip\\b|\\btls\\b|encrypt',
  'rate[ -]?limit|at a rate|too (?:many|quickly|fast)|too large|too big|too long|message size|frequency|throttl',
  'per (?:hour|day|minute)|daily|hourly|limit for the number|try (?:again )?later|filter|\\bheaders?\\b|malformed',
  'rfc ?[25]?822\\b|rfc ?5322|compliant|smtputf8|8bitmime|mail loop|loop detected|too many hops|hop count',
  'by (?:the )?recipients?\\b|recipient preferences|refuses? to accept your',
  // German, French, Spanish, Italian, Portuguese.
  'richtlinie|gesperrt|abgelehnt wegen|unerw.{1,4}nscht|bloqu|refus[eé]e? pour|politique|ind[eé]sirable|pol[ií]tica',
  'lista negra|lista nera|no deseado|bloccat|indesiderat|rejeitad.{0,20} por',
);

/** The mailbox exists. */
export const MAILBOX_FULL = anyOf(
  'quota|mailbox (?:is |was )?(?:full|size)|(?:mail ?box|inbox|folder|account) (?:is |was )?(?:full|over)|full mailbox',
  'storage allocation|insufficient (?:disk|system|storage)|out of (?:disk )?(?:space|storage)|disk (?:is )?full',
  'enough space|temporar(?:y|ily)|(?:exceeded|over) (?:its|their|the) (?:storage|size|limit)',
  'postfach (?:ist )?voll|bo[iî].{0,3}te .{0,30}pleine|buz[oó]n .{0,20}lleno|casella .{0,20}piena|caixa .{0,20}cheia',
);

/** A refusal that names nothing: `5.1.1 Message rejected`. */
export const BARE_REFUSAL = /reject|refus|declin|denied|not accept/;

const NAME =
  '(?:users?|usernames?|accounts?|mail ?box(?:es)?|mail ?drops?|recipients?|address(?:es)?|addressees?|alias(?:es)?' +
  '|persons?|local[ -]?parts?|e-?mail(?: address| account)?|inbox|subscriber|customer)';
const ABSENT =
  "(?:unknown|(?:not|n't) (?:be )?(?:found|exist|known|valid|listed|local|active|recogni[sz]ed|available|our|here)" +
  '|cannot be found|non-?existent|invalid|unavailable|no longer (?:valid|available|exists?|active|in use|accept)' +
  '|disabled|deactivated|inactive|suspended|closed|expired|terminated|cancell?ed|unrout(?:e)?able|undeliverable' +
  '|unallocated|not present|has moved|missing home)';

export const NAMES_MAILBOX = new RegExp(`\\b${NAME}\\b`, 'u');

/** The mailbox does not exist, or has ended. */
export const NO_MAILBOX = anyOf(
  `(?:no such|unknown|invalid|non-?existent|undeliverable|unrout(?:e)?able|inactive|disabled|bad|wrong|not? valid)` +
    `(?: [a-z]+){0,2}[ -]${NAME}\\b`,
  `\\b${NAME}\\b[^.;]{0,60}?(?:\\b|(?=n't))${ABSENT}`,
  `\\bno (?:such )?${NAME} (?:here|by|with|for|of|found|available|named)|nobody|no one (?:at|by|here|with)`,
  `not (?:a |an )?(?:[a-z]+ )?(?:valid|known|local|active|existing) ${NAME}|no such (?:person|local)|not our customer`,
  "doesn't have an? .{0,40}account|not in (?:my |the |our )?(?:recipient|validrcptto|user|directory)|invalid-recipient",
  'blocked due to inactivity|no longer (?:valid|accepts? mail|in use|with (?:us|the))|is no longer (?:on|at)',
  'user ?unknown|unknown ?user|recipient ?not ?found|5\\.1\\.0 address rejected|unknown or illegal alias',
  // The domain.
  '(?:host|domain)(?: or domain)?(?: name)? (?:is )?(?:not found|unknown|does not exist)|no such (?:domain|host)',
  'invalid domain|unrout(?:e)?able mail domain',
  // German, French, Spanish, Italian, Portuguese, Dutch.
  '(?:empf.{1,4}nger|benutzer|postfach|adresse|konto)\\S* .{0,40}(?:unbekannt|nicht (?:gefunden|bekannt|vorhanden))',
  '(?:empf.{1,4}nger|benutzer|postfach|adresse|konto)\\S* .{0,40}(?:existiert nicht|ung.ltig)',
  'unbekannte[rs]? (?:empf.{1,4}nger|benutzer|adresse)|utilisateur inconnu',
  'destinataire\\S* .{0,20}(?:inconnu|invalide)',
  '(?:adresse|bo[iî]te|compte) .{0,30}(?:inexistante?|inconnue?|invalide|existe pas)|(?:usuario|usu[aá]rio) .{0,12}' +
    '(?:desconocido|desconhecido|inexistente|no existe|n[aã]o existe)|no existe (?:el|ese|dicha?|la|esa) ',
  '(?:cuenta|buz[oó]n|destinatario|destinat[aá]rio|conta) .{0,20}(?:no existe|inexistente|desconocido|n[aã]o existe)',
  'nessun utente|(?:utente|destinatario) (?:sconosciuto|inesistente)|casella .{0,20}inesistente|onbekende gebruiker',
  'gebruiker onbekend|(?:gebruiker|adres|postvak) .{0,20}bestaat niet',
);
