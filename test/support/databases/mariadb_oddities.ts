// A database of everything that is rarely thought of.

const longName = 'n'.repeat(64);
const blobBytes = `REPEAT(UNHEX('00275C1A0D0A60'), 9000000)`;
const wideColumns = Array.from({ length: 60 }, (_, i) => `c${i} CHAR(60) NOT NULL DEFAULT ''`).join(', ');

/** In their order, by user. Both users are admins. */
export const oddObjects: { by: 'app' | 'reports'; charset?: string; statements: string[] }[] = [
  {
    by: 'app',
    statements: [
      `ALTER DATABASE CHARACTER SET latin1 COLLATE latin1_german2_ci COMMENT 'it''s \\\\ \`odd\`; -- */'`,
      // Names.
      'CREATE TABLE `a ``b` (`c ``d` INT PRIMARY KEY, `e"f` TEXT)',
      'INSERT INTO `a ``b` VALUES (1, "x")',
      `CREATE TABLE \`it's "so" \\\\ %_.\` (a INT COMMENT 'it''s; \\\\ "so"') COMMENT 'a "table"; it''s'`,
      `INSERT INTO \`it's "so" \\\\ %_.\` VALUES (1)`,
      'CREATE TABLE `new\nline \\! touch` (a INT)',
      `CREATE TABLE \`${longName}\`
         (\`${longName}\` INT, CONSTRAINT \`${'c'.repeat(64)}\` CHECK (\`${longName}\` > 0))`,
      'CREATE TABLE `größe 表` (`naïve` INT)',
      'CREATE VIEW `v ``w` AS SELECT `c ``d` AS `x ``y` FROM `a ``b`',
      // Values.
      `CREATE TABLE texts (id INT PRIMARY KEY, a VARCHAR(50) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
         b TEXT CHARACTER SET latin1, c VARCHAR(20) CHARACTER SET ucs2, d CHAR(5) CHARACTER SET sjis, j JSON,
         bits BIT(12), g GEOMETRY, u UUID, i6 INET6, d6 DATETIME(6), t6 TIME(6), y YEAR, dec65 DECIMAL(65,30),
         f DOUBLE, e ENUM('a''b','ü'), s SET('x','y,z'))`.replace("'y,z'", "'yz'"),
      `INSERT INTO texts VALUES (1, '😀 \\0 \\Z \\n', 'ü', 'ж', '表', '{"a": ["ü", 1e400]}', b'101', POINT(1.5, -2),
         '123e4567-e89b-12d3-a456-426655440000', '2001:db8::1', '9999-12-31 23:59:59.999999', '-838:59:59', 1901,
         -99999999999999999999999999999999999.000000000000000000000000000001, 2.2250738585072014e-308, 'a''b', 'x,yz')`,
      'CREATE TABLE zeros (a DATE NOT NULL DEFAULT "0000-00-00", b TIMESTAMP NOT NULL DEFAULT "0000-00-00 00:00:00")',
      `SET sql_mode = ''`,
      `INSERT INTO zeros VALUES ('0000-00-00', '0000-00-00'), ('2024-02-31', NULL), ('2024-00-00', '2024-01-01')`,
      'SET sql_mode = DEFAULT',
      'CREATE TABLE counted (id INT AUTO_INCREMENT PRIMARY KEY, a INT) AUTO_INCREMENT = 1000',
      `SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'`,
      'INSERT INTO counted VALUES (0, 0)',
      'SET sql_mode = DEFAULT',
      'CREATE TABLE big (id INT PRIMARY KEY, a LONGBLOB)',
      `INSERT INTO big VALUES (1, ${blobBytes})`,
      'CREATE TABLE checked (a INT CHECK (a > 0))',
      'SET check_constraint_checks = 0',
      'INSERT INTO checked VALUES (-1)',
      'SET check_constraint_checks = 1, innodb_strict_mode = 0',
      `CREATE TABLE wide (${wideColumns}) CHARACTER SET utf8mb4 ROW_FORMAT = COMPACT`,
      'SET innodb_strict_mode = 1',
      // Tables.
      `CREATE TABLE seen (a INT, b INT INVISIBLE DEFAULT 7, v INT AS (a + b) VIRTUAL, p INT AS (a * 2) STORED,
         w INT AS (a + 1) VIRTUAL INVISIBLE, KEY (v))`,
      'INSERT INTO seen (a) VALUES (1), (2)',
      `CREATE TABLE parts (id INT, y INT) PARTITION BY RANGE (y) SUBPARTITION BY HASH (id) SUBPARTITIONS 2
         (PARTITION \`p 1\` VALUES LESS THAN (2000), PARTITION p2 VALUES LESS THAN MAXVALUE)`,
      'INSERT INTO parts VALUES (1, 1999), (2, 2024)',
      'CREATE TABLE squeezed (a INT PRIMARY KEY, b TEXT) PAGE_COMPRESSED = 1 PAGE_COMPRESSION_LEVEL = 3',
      'CREATE TABLE zipped (a INT PRIMARY KEY, b TEXT) ROW_FORMAT = COMPRESSED KEY_BLOCK_SIZE = 8',
      'CREATE TABLE aria (a INT, FULLTEXT (b), b TEXT) ENGINE = Aria TRANSACTIONAL = 1 PAGE_CHECKSUM = 1',
      'CREATE TABLE plain (a INT) ENGINE = MyISAM CHECKSUM = 1 MAX_ROWS = 100',
      'CREATE TABLE csv_lines (a INT NOT NULL) ENGINE = CSV',
      'CREATE TABLE kept (id INT, a DATE, b DATE, PERIOD FOR p (a, b), UNIQUE (id, p WITHOUT OVERLAPS))',
      'CREATE TABLE history (id INT PRIMARY KEY, a INT) WITH SYSTEM VERSIONING',
      'INSERT INTO history VALUES (1, 1)',
      'UPDATE history SET a = 2',
      'UPDATE history SET a = 3',
      `CREATE TABLE periods (id INT, s TIMESTAMP(6) GENERATED ALWAYS AS ROW START, e TIMESTAMP(6) GENERATED ALWAYS AS
         ROW END, PERIOD FOR SYSTEM_TIME (s, e)) WITH SYSTEM VERSIONING`,
      'INSERT INTO periods (id) VALUES (1)',
      'DELETE FROM periods',
      'CREATE SEQUENCE steps START 5 INCREMENT 3 MAXVALUE 1000 CACHE 10 CYCLE',
      'SELECT NEXTVAL(steps)',
      'SET foreign_key_checks = 0',
      'CREATE TABLE hen (id INT PRIMARY KEY, egg INT, FOREIGN KEY (egg) REFERENCES egg (id) ON DELETE CASCADE)',
      'CREATE TABLE egg (id INT PRIMARY KEY, hen INT, FOREIGN KEY (hen) REFERENCES hen (id))',
      'INSERT INTO hen VALUES (1, 1)',
      'INSERT INTO egg VALUES (1, 1)',
      'CREATE TABLE orphan (a INT, FOREIGN KEY (a) REFERENCES nowhere (id))',
      'INSERT INTO orphan VALUES (5)',
      'SET foreign_key_checks = 1',
      // Code.
      'CREATE TABLE guarded (a INT)',
      'INSERT INTO guarded VALUES (1)',
      `CREATE TRIGGER never BEFORE INSERT ON guarded FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'`,
      'CREATE TRIGGER `second ``one` BEFORE INSERT ON guarded FOR EACH ROW SET NEW.a = 2',
      'CREATE TRIGGER zeroth BEFORE INSERT ON guarded FOR EACH ROW PRECEDES never SET NEW.a = 0',
      `SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'`,
      `CREATE PROCEDURE "odd mode" (OUT a TEXT) COMMENT 'it''s' BEGIN SET a = '\\'; /* ;; */
         SELECT "a", ';;' FROM checked;
         -- it's ;; */
       END`,
      `SET sql_mode = 'ORACLE'`,
      'CREATE PACKAGE pack AS PROCEDURE p; END',
      'CREATE PACKAGE BODY pack AS PROCEDURE p AS BEGIN SELECT 1; END; END',
      'SET sql_mode = DEFAULT',
      'CREATE FUNCTION twice (a INT) RETURNS INT DETERMINISTIC SQL SECURITY INVOKER RETURN a * 2',
      `CREATE EVENT \`e ''e\` ON SCHEDULE EVERY 1 DAY STARTS '2020-01-01' DISABLE
         COMMENT 'it''s' DO DELETE FROM checked`,
      `SET time_zone = 'Europe/Berlin'`,
      'CREATE EVENT zoned ON SCHEDULE EVERY 1 DAY DO DELETE FROM checked',
      'SET time_zone = DEFAULT',
      'CREATE TABLE numbered (a INT DEFAULT NEXTVAL(steps), u VARCHAR(36) DEFAULT (UUID()), b INT DEFAULT (a + 1))',
      'INSERT INTO numbered (b) VALUES (1)',
      `CREATE EVENT running ON SCHEDULE EVERY 1 HOUR ON COMPLETION PRESERVE DO INSERT INTO checked VALUES (9)`,
    ],
  },
  {
    by: 'app',
    charset: 'SJIS_JAPANESE_CI',
    statements: [
      `CREATE PROCEDURE soft () SELECT '表', 'ソ' -- 能`,
      `CREATE VIEW soft_view AS SELECT '表' AS a`,
      'CREATE TRIGGER soft_trigger BEFORE INSERT ON checked FOR EACH ROW BEGIN DECLARE a TEXT DEFAULT "ソ"; END',
    ],
  },
  {
    by: 'app',
    statements: [
      // Views on views, in an order that is not the alphabet's.
      'CREATE VIEW z_base AS SELECT id, a FROM history WITH CHECK OPTION',
      'CREATE VIEW b_middle AS SELECT id, twice(a) AS t FROM z_base',
      'CREATE ALGORITHM = TEMPTABLE SQL SECURITY INVOKER VIEW a_top AS SELECT t FROM b_middle',
    ],
  },
  {
    by: 'reports',
    statements: [
      'CREATE VIEW of_history AS SELECT COUNT(*) AS n FROM history FOR SYSTEM_TIME ALL',
      'CREATE VIEW of_reports AS SELECT n FROM of_history',
      'CREATE PROCEDURE `count``s` () SELECT n FROM of_reports',
    ],
  },
];
