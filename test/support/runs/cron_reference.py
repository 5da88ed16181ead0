"""Due times of cron expressions around changes of the clock, minute by minute, from the documented rules alone.

  python3 cron_reference.py SEED COUNT > cases.tsv     random expressions: cron, zone, start, minutes after the start
  python3 cron_reference.py - < cron_times.tsv         the due times of a table again

The table that the tests compare with (cron_times.tsv) is of such cases: zones and years with a change of the clock.
They are years that are over: what a government will do next year differs between versions of the time zone database.
"""

import calendar
import random
import sys
from datetime import date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

ZONES = """Europe/Berlin America/New_York Australia/Lord_Howe America/Nuuk America/Santiago America/Havana Asia/Beirut
Africa/Cairo Africa/Casablanca America/Asuncion Atlantic/Azores Pacific/Chatham America/St_Johns Antarctica/Troll
Asia/Tehran Pacific/Apia Asia/Kolkata UTC Asia/Gaza Europe/London Australia/Sydney America/Sao_Paulo Africa/El_Aaiun
Pacific/Norfolk Asia/Pyongyang America/Caracas Antarctica/Casey America/Metlakatla""".split()
MONTHS = {name: at for at, name in enumerate("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split(), 1)}
DAYS = {name: at for at, name in enumerate("SUN MON TUE WED THU FRI SAT".split())}
MINUTE = timedelta(minutes=1)
WINDOW = timedelta(hours=30)


def numbers(field, low, high, names=()):
    found = set()
    for part in filter(None, field.split(",")):
        span, _, step = part.partition("/")
        ends = [low, high] if span == "*" else [names[end] if end in names else int(end) for end in span.split("-")]
        found |= set(range(ends[0], ends[-1] + 1, int(step or 1)))
    return found


def has(field, test):
    return [part for part in field.split(",") if test(part)], ",".join(p for p in field.split(",") if not test(p))


def nearest_weekday(year, month, day, last):
    near = [day + by for by in (0, -1, 1, -2, 2) if 1 <= day + by <= last]
    return next(one for one in near if date(year, month, one).weekday() < 5) if day <= last else None


def matches_day(day, of_month, month, of_week):
    if day.month not in numbers(month, 1, 12, MONTHS):
        return False
    last = calendar.monthrange(day.year, day.month)[1]
    named, plain = has(of_month, lambda part: part[-1] in "LW")
    by_month = day.day in numbers(plain, 1, 31)
    for part in named:
        if part == "L":
            by_month |= day.day == last
        elif part == "LW":
            by_month |= day.day == max(d for d in range(1, last + 1) if date(day.year, day.month, d).weekday() < 5)
        else:
            by_month |= day.day == nearest_weekday(day.year, day.month, int(part[:-1]), last)
    weekday = (day.weekday() + 1) % 7
    named, plain = has(of_week, lambda part: "#" in part or (part[-1] == "L" and len(part) > 1))
    by_week = weekday in {one % 7 for one in numbers(plain, 0, 6, DAYS)}
    for part in named:
        name, _, nth = part.partition("#")
        number = DAYS[name] if name in DAYS else int(name.rstrip("L")) % 7
        by_week |= weekday == number and (day.day + 7 > last if not nth else (day.day - 1) // 7 + 1 == int(nth))
    if of_month == "*" or of_week == "*":
        return (of_month == "*" or by_month) and (of_week == "*" or by_week)
    return by_month or by_week


def due_minutes(cron, zone, start):
    minute, hour, *days = cron.split()
    minutes, hours, known = numbers(minute, 0, 59), numbers(hour, 0, 23), {}

    def matches(local):
        if local.minute not in minutes or local.hour not in hours:
            return False
        if local.date() not in known:
            known[local.date()] = matches_day(local.date(), *days)
        return known[local.date()]

    found, seen, before = [], set(), None
    for at in range(WINDOW // MINUTE * 2 + 1):
        local = (start + at * MINUTE).astimezone(ZoneInfo(zone)).replace(tzinfo=None)
        if "*" in minute + hour:
            is_due = matches(local)
        else:
            left_out = range(1, (local - before) // MINUTE) if before else ()
            is_due = any(matches(before + by * MINUTE) for by in left_out) or (local not in seen and matches(local))
            seen.add(local)
        found += [at] if is_due else []
        before = local
    return found


def changes(zone):
    first = 2011 if zone in ("Pacific/Apia", "Asia/Pyongyang", "America/Caracas", "Antarctica/Casey") else 2020
    at, found = datetime(first, 1, 1, tzinfo=timezone.utc), []
    offset = lambda time: time.astimezone(ZoneInfo(zone)).utcoffset()
    while at.year < 2026:
        if offset(at) != offset(at + timedelta(hours=12)):
            found.append(next(at + by * MINUTE for by in range(1, 721) if offset(at) != offset(at + by * MINUTE)))
        at += timedelta(hours=12)
    return found or [datetime(2025, 3, 3, tzinfo=timezone.utc)]


def random_field(chance, low, high, near):
    one = lambda: chance.choice(near) if chance.random() < 0.7 else chance.randint(low, high)
    first, last = sorted([one(), one()])
    step = chance.choice([2, 3, 4, 6, 12])
    forms = [f"{one()}", ",".join(str(n) for n in sorted({one(), one(), one()})), f"{first}-{last}"]
    return chance.choice([*forms, *forms, f"{first}-{last}/{chance.randint(1, 5)}", f"*/{step}", "*"])


def random_case(chance, all_changes):
    zone = chance.choice(ZONES)
    change = chance.choice(all_changes[zone])
    hour = (change - MINUTE).astimezone(ZoneInfo(zone)).hour
    days = ["*"] * 9 + ["L", "LW", "1W", "15W", "31W", "29", "1", "L,15", "30W,1W", "28-31", "30,31"]
    weekdays = ["*"] * 8 + ["SUN", "6", "0", "SAT,SUN", "MON-FRI", "0L", "6L", "SUN#2", "SUN#5", "6#4", "SUN#1,SAT#5"]
    minute = random_field(chance, 0, 59, [0, 15, 30, 45, 59])
    hours = random_field(chance, 0, 23, [(hour + by) % 24 for by in (-1, 0, 0, 1, 1, 2)])
    month = chance.choice(["*", "*", "*", str(change.month), random_field(chance, 1, 12, [2, 3, 10])])
    return f"{minute} {hours} {chance.choice(days)} {month} {chance.choice(weekdays)}", zone, change - WINDOW


def cases():
    if sys.argv[1] == "-":
        for line in sys.stdin:
            cron, zone, start, _ = line.rstrip("\n").split("\t")
            yield cron, zone, datetime.fromisoformat(start.replace("Z", "+00:00"))
    else:
        chance, all_changes = random.Random(int(sys.argv[1])), {zone: changes(zone) for zone in ZONES}
        for _ in range(int(sys.argv[2])):
            yield random_case(chance, all_changes)


for cron, zone, start in cases():
    due = ",".join(str(at) for at in due_minutes(cron, zone, start))
    print(cron, zone, start.strftime("%Y-%m-%dT%H:%MZ"), due, sep="\t")
