<?php

namespace Greeting;

class Text
{
    public static function of(string $name): string
    {
        return "Hello from $name";
    }
}
