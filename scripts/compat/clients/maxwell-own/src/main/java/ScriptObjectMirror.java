package jdk.nashorn.api.scripting;

/** Stands for a class of Java 8 to 14, which Maxwell compares values with. No value is one. */
public class ScriptObjectMirror {}
